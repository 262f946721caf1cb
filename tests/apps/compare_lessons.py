#!/usr/bin/env python3
"""Runs lessons and their Python twins, and compares their output byte for byte.

In lines that begin with "~", numbers are not compared. Fails if an exit code is not 0 or if the outputs
differ, and shows the differences.

  twins   on the CPU, with the GPUs hidden. The lessons must print the same with CUDA_VISIBLE_DEVICES
          empty and invalid, and with --page what their pages show.
  gpu     with the GPUs. Skipped (77) if there is none; fails instead if SCONCE_REQUIRE_GPU=1.
          With --simgpu, on simulated GPUs, where a race is an error.

With --labels, the output must contain the labels that the cells print on such a machine.
"""
import argparse
import ctypes
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "apps/lessons"), str(ROOT / "tests/support")]
import labels  # noqa: E402
import machine  # noqa: E402
import pages  # noqa: E402
import python_server  # noqa: E402
import sources  # noqa: E402


class Failed(Exception):
    """A lesson or its twin exited with another code than 0."""


def without_figures(line):
    return re.sub(r"-?(\d+\.?\d*(e[+-]?\d+)?|\b(inf|nan)\b)", "#", line)


def words(text):
    return [without_figures(line) for line in text.splitlines()]


def normal(text):
    return [without_figures(line) if line.startswith("~") else line for line in text.splitlines()]


def gpu_count():
    """Asks the driver, which respects CUDA_VISIBLE_DEVICES. Importing torch would take two seconds."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def on_gpus(command, arguments):
    """Adds sconce-simgpu and its flags before the command, if the GPUs are simulated ones."""
    if arguments.simgpu is None:
        return command
    return [str(arguments.simgpu), "--gpus", str(arguments.gpus), "--races", "throw", "--", *command]


def variables(arguments, **more):
    return machine.environment(arguments.python.parent, **more)


def run(command, environment):
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def output(command, done):
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(name, expected, got, sides):
    difference = list(difflib.unified_diff(expected, got, *sides, lineterm=""))
    if difference:
        print(f"{name} differs:", *difference, sep="\n")
    return not difference


def run_lesson(lesson, arguments, **more):
    command = on_gpus(lesson.command(arguments.bin), arguments)
    return output(command, run(command, variables(arguments, **more)))


def run_twin(lesson, arguments, **more):
    environment = variables(arguments, **more)
    script = [str(arguments.lessons / f"{lesson.name}.py"), *lesson.arguments]
    command = [str(arguments.python), *script]
    if lesson.processes > 1:
        command = ["torchrun", "--standalone", f"--nproc-per-node={lesson.processes}", *script]
    elif arguments.server and arguments.how == "twins":
        # Each parent process, such as ctest, has its own server with its own environment.
        socket = f"{arguments.server}-{os.getppid()}"
        done = python_server.run(socket, script, environment)
        if done:
            return output(command, done)
        print(f"nobody serves at {socket}: the twin runs in a process of its own")
    command = on_gpus(command, arguments)
    return output(command, run(command, environment))


def compare_with_page(lesson, arguments, cpp):
    """Compares the figures only if LibTorch and the CPU are those of the page."""
    if shutil.which("nvidia-smi") and lesson.name == "01_gpus":
        return True  # its page shows the machine's GPUs, which are hidden from this process
    torch, cpu = pages.made_with(arguments.lessons)
    if torch != machine.torch_version(arguments.bin):
        print(f"{lesson.name}: the page is of LibTorch {torch}: not compared")
        return True
    keep = normal
    if cpu != machine.cpu():
        print(f"{lesson.name}: the page is of a CPU with {cpu}: its figures are not compared")
        keep = words
    return compare(lesson.name, keep(pages.output(arguments.lessons, lesson.name)), keep(cpp), ("page", "C++"))


def has_labels(lesson, arguments, cpp, gpus):
    if not arguments.labels:
        return True
    listed = labels.read(arguments.lessons)
    wanted = labels.applying(listed, lesson.ids, gpus)
    absent = labels.missing(wanted, cpp)
    for label in absent:
        print(f"{lesson.name}: {label.id} prints, missing or out of order: {label.text}")
    wrong = labels.differences(listed, labels.material(arguments.lessons))
    print(*wrong, f"{lesson.name}: {len(wanted) - len(absent)} of {len(wanted)} labels", sep="\n")
    return not absent and not wrong


def compare_on_cpu(lesson, arguments):
    empty = run_lesson(lesson, arguments, CUDA_VISIBLE_DEVICES="")
    nonsense = run_lesson(lesson, arguments, CUDA_VISIBLE_DEVICES="nonsense")
    twin = run_twin(lesson, arguments, CUDA_VISIBLE_DEVICES="")
    equal = compare(lesson.name, normal(twin), normal(empty), ("Python", "C++"))
    equal &= compare(lesson.name, normal(empty), normal(nonsense), ("empty", "nonsense"))
    equal &= has_labels(lesson, arguments, empty, gpus=0)
    return equal & (not arguments.page or compare_with_page(lesson, arguments, empty))


def compare_on_gpu(lesson, arguments):
    cpp = run_lesson(lesson, arguments)
    equal = compare(lesson.name, normal(run_twin(lesson, arguments)), normal(cpp), ("Python", "C++"))
    return equal & has_labels(lesson, arguments, cpp, arguments.gpus)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("how", choices=["twins", "gpu"])
    parser.add_argument("names", nargs="*", help="names to compare (default: all)")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python with the same LibTorch")
    parser.add_argument("--lessons", type=pathlib.Path, default=sources.HERE, help="folder of the twins")
    parser.add_argument("--page", action="store_true", help="also compare with the page")
    parser.add_argument("--labels", action="store_true", help="also check the cells' labels")
    parser.add_argument("--simgpu", type=pathlib.Path, help="sconce-simgpu, which simulates the GPUs")
    parser.add_argument("--gpus", type=int, help="number of simulated GPUs")
    parser.add_argument("--server", type=pathlib.Path, help="prefix of python_server.py's socket")
    arguments = parser.parse_intermixed_args()
    chosen = [lesson for lesson in sources.lessons(arguments.lessons)
              if lesson.name in (arguments.names or [lesson.name])]
    if not chosen:
        sys.exit(f"no lesson has these names: {' '.join(arguments.names)}")
    if arguments.how == "gpu" and arguments.simgpu is None:
        arguments.gpus = gpu_count()
    if arguments.how == "gpu" and arguments.gpus == 0:
        print("needs a GPU, and this process sees none")
        return 1 if os.environ.get("SCONCE_REQUIRE_GPU") == "1" else 77
    compared = compare_on_gpu if arguments.how == "gpu" else compare_on_cpu
    try:
        equal = [compared(lesson, arguments) for lesson in chosen]
    except Failed as failure:
        sys.exit(str(failure))
    print(f"{sum(equal)} of {len(equal)} lessons are correct")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
