"""The outputs of lessons on two simulated GPUs, without the figures that only a real GPU gives."""
import re
import subprocess

import machine

LESSONS = ["03_devices", "05_copying", "07_networks", "11_transfers", "17_exercise_4", "28_data_parallel",
           "29_distributed"]  # where devices, copies, shards and ranks matter
REAL = "needs a real GPU"
# Lines whose value depends on the kernels of a real GPU, though it is compared exactly with Python's.
OF_KERNELS = re.compile(r"^(.*\b(?:allclose|[Cc]lose|[Bb]ackend|cuDNN|cuBLAS|NCCL|[Vv]ersion)\b[^:]*:) .+$")


def program(bin_folder):
    """Returns the simulator beside the lessons, or None."""
    file = bin_folder.parent / "sconce-simgpu"
    return file if file.exists() else None


def run(lesson, bin_folder):
    """Returns what the lesson prints on two simulated GPUs, as the page shows it."""
    command = [str(program(bin_folder)), "--gpus", "2", "--beside-a-driver", "--races", "throw", "--",
               *lesson.command(bin_folder)]
    printed = subprocess.run(command, env=machine.environment(machine.python_folder(bin_folder)), check=True,
                             text=True, stdout=subprocess.PIPE).stdout
    return shown(printed)


def shown(output):
    return "".join(f"{without_figures(line)}\n" for line in output.splitlines())


def without_figures(line):
    if line.startswith("~"):
        words = re.split(r"\s*[-+]?\b(?:\d|inf\b|nan\b)", line, maxsplit=1)[0].rstrip(" :=(")
        return f"{words}: {REAL}"
    return OF_KERNELS.sub(rf"\1 {REAL}", line)
