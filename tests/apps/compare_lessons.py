#!/usr/bin/env python3
"""Runs lessons and their twins in Python, and compares what they print, byte for byte.

Of a line that begins with "~" the figures are left out, in both. Fails where one exits with another
code than 0, and shows where the two differ.

  twins   on the CPU, with the GPUs out of sight
  gpu     with the GPUs; skipped (77) where there is none, failed if SCONCE_REQUIRE_GPU=1
  hidden  the lessons alone, with CUDA_VISIBLE_DEVICES empty and with nonsense in it: both print the
          same, and what the page shows but for figures
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
sys.path.insert(0, str(ROOT / "apps/lessons"))
import page  # noqa: E402


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


def run(command, bin_dir, **environment):
    variables = dict(os.environ, PATH=f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
                     PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", **environment)
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(name, expected, got, sides):
    difference = list(difflib.unified_diff(expected, got, *sides, lineterm=""))
    if difference:
        print(f"{name} differs:", *difference, sep="\n")
    return not difference


def compare_twins(lesson, arguments, **environment):
    tools = arguments.python.parent
    cpp = run(lesson.command(arguments.bin), tools, **environment)
    twin = [str(arguments.lessons / f"{lesson.name}.py")]
    if lesson.processes > 1:
        twin = ["torchrun", "--standalone", f"--nproc-per-node={lesson.processes}", *twin]
    else:
        twin = [str(arguments.python), *twin]
    return compare(lesson.name, normal(run(twin, tools, **environment)), normal(cpp), ("Python", "C++"))


def compare_hidden(lesson, arguments):
    tools = arguments.python.parent
    empty = run(lesson.command(arguments.bin), tools, CUDA_VISIBLE_DEVICES="")
    nonsense = run(lesson.command(arguments.bin), tools, CUDA_VISIBLE_DEVICES="nonsense")
    equal = compare(lesson.name, normal(empty), normal(nonsense), ("empty", "nonsense"))
    shown = page.outputs(page.PAGE.read_text()).get(lesson.name, "").splitlines()
    if shutil.which("nvidia-smi") and lesson.name == "01_gpus":
        return equal  # it shows the machine's GPUs, which the process does not see
    return equal & compare(lesson.name, [without_figures(line) for line in shown],
                           [without_figures(line) for line in empty.splitlines()], ("page", "C++"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("how", choices=["twins", "gpu", "hidden"])
    parser.add_argument("names", nargs="*", help="all, if none is named")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the programs are")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="of the same LibTorch")
    parser.add_argument("--lessons", type=pathlib.Path, default=page.HERE, help="where the twins are")
    arguments = parser.parse_intermixed_args()
    chosen = [lesson for lesson in page.lessons(arguments.lessons)
              if lesson.name in (arguments.names or [lesson.name])]
    if not chosen:
        sys.exit(f"no lesson of these names: {' '.join(arguments.names)}")
    if arguments.how == "gpu" and not has_gpu():
        print("needs a GPU, and this process sees none")
        return 1 if os.environ.get("SCONCE_REQUIRE_GPU") == "1" else 77
    if arguments.how == "hidden":
        equal = [compare_hidden(lesson, arguments) for lesson in chosen]
    elif arguments.how == "gpu":
        equal = [compare_twins(lesson, arguments) for lesson in chosen]
    else:
        equal = [compare_twins(lesson, arguments, CUDA_VISIBLE_DEVICES="") for lesson in chosen]
    print(f"{sum(equal)} of {len(equal)} lessons print what they should")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
