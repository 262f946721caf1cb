#!/usr/bin/env python3
"""Runs lessons and their twins in Python, and compares what they print, byte for byte.

Of a line that begins with "~" the figures are left out, in both. Fails where one exits with another
code than 0, and shows where the two differ.

  twins   on the CPU, with the GPUs out of sight; the lessons print the same with CUDA_VISIBLE_DEVICES
          empty and with nonsense in it, and with --page what the page shows, but for figures
  gpu     with the GPUs; skipped (77) where there is none, failed if SCONCE_REQUIRE_GPU=1
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
import page  # noqa: E402
import python_server  # noqa: E402


def without_figures(line):
    return re.sub(r"-?(\d+\.?\d*(e[+-]?\d+)?|\b(inf|nan)\b)", "#", line)


def normal(text):
    return [without_figures(line) if line.startswith("~") else line for line in text.splitlines()]


def has_gpu():
    """Asks the driver, which heeds CUDA_VISIBLE_DEVICES; torch would take two seconds."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def variables(arguments, **more):
    path = f"{arguments.python.parent}{os.pathsep}{os.environ['PATH']}"
    return dict(os.environ, PATH=path, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", **more)


def run(command, environment):
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def output(command, done):
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(name, expected, got, sides):
    difference = list(difflib.unified_diff(expected, got, *sides, lineterm=""))
    if difference:
        print(f"{name} differs:", *difference, sep="\n")
    return not difference


def run_lesson(lesson, arguments, **more):
    command = lesson.command(arguments.bin)
    return output(command, run(command, variables(arguments, **more)))


def run_twin(lesson, arguments, **more):
    environment = variables(arguments, **more)
    script = str(arguments.lessons / f"{lesson.name}.py")
    command = [str(arguments.python), script]
    if lesson.processes > 1:
        command = ["torchrun", "--standalone", f"--nproc-per-node={lesson.processes}", script]
    elif arguments.server and arguments.how == "twins":
        # Whoever starts these processes, ctest say, has a server of its own, with its environment.
        socket = f"{arguments.server}-{os.getppid()}"
        done = python_server.run(socket, [script], environment)
        if done:
            return output(command, done)
        print(f"nobody serves at {socket}: the twin runs in a process of its own")
    return output(command, run(command, environment))


def compare_with_page(lesson, arguments, cpp):
    if shutil.which("nvidia-smi") and lesson.name == "01_gpus":
        return True  # it shows the machine's GPUs, which the process does not see
    shown = page.outputs((arguments.lessons / page.PAGE.name).read_text()).get(lesson.name, "").splitlines()
    return compare(lesson.name, [without_figures(line) for line in shown],
                   [without_figures(line) for line in cpp.splitlines()], ("page", "C++"))


def compare_on_cpu(lesson, arguments):
    empty = run_lesson(lesson, arguments, CUDA_VISIBLE_DEVICES="")
    nonsense = run_lesson(lesson, arguments, CUDA_VISIBLE_DEVICES="nonsense")
    twin = run_twin(lesson, arguments, CUDA_VISIBLE_DEVICES="")
    equal = compare(lesson.name, normal(twin), normal(empty), ("Python", "C++"))
    equal &= compare(lesson.name, normal(empty), normal(nonsense), ("empty", "nonsense"))
    return equal & (not arguments.page or compare_with_page(lesson, arguments, empty))


def compare_on_gpu(lesson, arguments):
    return compare(lesson.name, normal(run_twin(lesson, arguments)), normal(run_lesson(lesson, arguments)),
                   ("Python", "C++"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("how", choices=["twins", "gpu"])
    parser.add_argument("names", nargs="*", help="all, if none is named")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the programs are")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="of the same LibTorch")
    parser.add_argument("--lessons", type=pathlib.Path, default=page.HERE, help="where the twins are")
    parser.add_argument("--page", action="store_true", help="compare with the page, too")
    parser.add_argument("--server", type=pathlib.Path, help="the prefix of python_server.py")
    arguments = parser.parse_intermixed_args()
    chosen = [lesson for lesson in page.lessons(arguments.lessons)
              if lesson.name in (arguments.names or [lesson.name])]
    if not chosen:
        sys.exit(f"no lesson of these names: {' '.join(arguments.names)}")
    if arguments.how == "gpu" and not has_gpu():
        print("needs a GPU, and this process sees none")
        return 1 if os.environ.get("SCONCE_REQUIRE_GPU") == "1" else 77
    compared = compare_on_gpu if arguments.how == "gpu" else compare_on_cpu
    equal = [compared(lesson, arguments) for lesson in chosen]
    print(f"{sum(equal)} of {len(equal)} lessons print what they should")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
