#!/usr/bin/env python3
"""Runs lessons and their Python twins, and compares their output byte for byte.

In lines that begin with "~", numbers are not compared. Fails if an exit code is nonzero or if the outputs
differ, and shows the differences.

  twins   on the CPU, with the GPUs hidden. Lessons that print the machine's hardware must print the same output
          with CUDA_VISIBLE_DEVICES empty and invalid. With --page, all lessons must print what their pages show.
  gpu     with the GPUs. Skipped (77) if there is no GPU; fails instead if SCONCE_REQUIRE_GPU=1.
          With --simgpu, on simulated GPUs, where a race is an error.

With --counter, the same runs count products, sums, copies, waits, and host reads, and each count must equal the
count in tests/lessons/counts.json, which lists the counted lessons. --counts show prints the counts after the program.
--counts write writes them to the table; if the counts of C++ and Python differ, add the reason by hand. On real GPUs,
nothing is counted.
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
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "apps/lessons"), str(ROOT / "tests/support"), str(ROOT / "tests/lessons")]
import counting  # noqa: E402
import lessons as sources  # noqa: E402
import machine  # noqa: E402
import page  # noqa: E402
import python_server  # noqa: E402

OF_THE_MACHINE = ["d2l_gpus_notebook/0_gpus", "d2l_gpus/1_computing_devices", "gpu_acceleration_guide/3_device_management",
                  "using_gpus/2_working_with_tensors_on_gpus"]  # print the machine's hardware


class Failed(Exception):
    """A lesson or its twin exited with a nonzero code."""


def without_figures(line):
    return re.sub(r"-?(\d+\.?\d*(e[+-]?\d+)?|\b(inf|nan)\b)", "#", line)


def words(text):
    return [without_figures(line) for line in text.splitlines()]


def normal(text):
    return [without_figures(line) if line.startswith("~") else line for line in text.splitlines()]


def gpu_count():
    """Queries the driver, which respects CUDA_VISIBLE_DEVICES. Importing torch would take two seconds."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def on_gpus(command, arguments, counts=None):
    """Prepends sconce-simgpu and its flags to the command if the GPUs are simulated."""
    if arguments.simgpu is None:
        return command
    counting_waits = ["--counts", str(counting.simgpu_file(counts))] if counts else []
    return [str(arguments.simgpu), "--gpus", str(arguments.gpus), "--races", "throw", *counting_waits, "--", *command]


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


def run_lesson(lesson, arguments, counts=None, **more):
    """Returns the output. Writes the counts to a file if one is given."""
    command = lesson.command(arguments.bin)
    if counts:
        command[-1:] = counting.command(arguments.python, arguments.counter, command[-1:])
        more["SCONCE_COUNTS"] = str(counts)
    command = on_gpus(command, arguments, counts)
    return output(command, run(command, variables(arguments, **more)))


def run_twin(lesson, arguments, counts=None, **more):
    script = [str(arguments.lessons / f"{lesson.name}.py"), *lesson.arguments]
    if counts:
        script = counting.command(arguments.python, arguments.counter, script)[1:]
        more["SCONCE_COUNTS"] = str(counts)
    environment = variables(arguments, **more)
    command = [str(arguments.python), *script]
    if lesson.processes > 1:
        command = ["torchrun", "--standalone", f"--nproc-per-node={lesson.processes}", *script]
    elif arguments.server and arguments.how == "twins":
        # Each parent process, such as ctest, has a separate server with a separate environment.
        socket = f"{arguments.server}-{os.getppid()}"
        done = python_server.run(socket, script, environment)
        if done:
            return output(command, done)
        print(f"nobody serves at {socket}: the twin runs in a process of its own")
    command = on_gpus(command, arguments, counts)
    return output(command, run(command, environment))


def run_both(lesson, arguments, **more):
    """Returns the outputs of the lesson and its twin, and whether their counts match the table."""
    counted = lesson.name in counting.read_table(arguments.table) or (arguments.counts == "write" and arguments.names)
    if not arguments.counter or not counted:
        return run_lesson(lesson, arguments, **more), run_twin(lesson, arguments, **more), True
    with tempfile.TemporaryDirectory() as folder:
        files = {side: pathlib.Path(folder) / side for side in counting.SIDES}
        cpp = run_lesson(lesson, arguments, files["C++"], **more)
        twin = run_twin(lesson, arguments, files["Python"], **more)
        try:
            counted = {side: counting.read(file, lesson.processes) for side, file in files.items()}
        except counting.Missing as missing:
            raise Failed(f"{lesson.name}: {missing}") from None
    return cpp, twin, has_counts(lesson, arguments, cpp, counted)


def has_counts(lesson, arguments, cpp, counted):
    table, gpus = counting.read_table(arguments.table), arguments.gpus
    if arguments.counts == "show":
        print(cpp, counting.as_text(counted), sep="\n")
    if arguments.counts == "write":
        counting.update(table, lesson.name, gpus, counted)
        counting.write_table(table, arguments.table)
    wrong = [difference for side in counting.SIDES
             for difference in counting.differences(table, lesson.name, side, gpus, counted[side])]
    wrong += counting.without_reason(table, lesson.name)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return not wrong


def compare_with_page(lesson, arguments, cpp):
    """Compares the figures only if the versions of LibTorch and the CPU match the page."""
    if shutil.which("nvidia-smi") and lesson.name.endswith(("/0_gpus", "/0_setup")):
        return True  # its page shows the machine's GPUs, which are hidden from this process
    torch, cpu = page.made_with()
    if torch != machine.torch_version(arguments.bin):
        print(f"{lesson.name}: the page is of LibTorch {torch}: not compared")
        return True
    keep = normal
    if cpu != machine.cpu():
        print(f"{lesson.name}: the page is of a CPU with {cpu}: its figures are not compared")
        keep = words
    return compare(lesson.name, keep(page.shown(lesson)), keep(cpp), ("page", "C++"))


def compare_on_cpu(lesson, arguments):
    empty, twin, equal = run_both(lesson, arguments, CUDA_VISIBLE_DEVICES="")
    equal &= compare(lesson.name, normal(twin), normal(empty), ("Python", "C++"))
    if lesson.name in OF_THE_MACHINE:
        nonsense = run_lesson(lesson, arguments, CUDA_VISIBLE_DEVICES="nonsense")
        equal &= compare(lesson.name, normal(empty), normal(nonsense), ("empty", "nonsense"))
    return equal & (not arguments.page or compare_with_page(lesson, arguments, empty))


def compare_on_gpu(lesson, arguments):
    cpp, twin, equal = run_both(lesson, arguments)
    return equal & compare(lesson.name, normal(twin), normal(cpp), ("Python", "C++"))


def refuse(text):
    """Prints one line and exits."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(2)


def need(path, what, command):
    if not path.exists():
        refuse(f"{what}: there is no {path}; `{command}` makes it")


def choose(arguments, names=()):
    """Returns the lessons with these names, or all lessons. Exits if a lesson or a file that it needs does not
    exist."""
    files = sources.files(arguments.lessons)
    unknown = [name for name in names if name not in [f"{file.parent.name}/{file.stem}" for file in files]]
    if unknown:
        refuse(f"no lesson has the name {', '.join(unknown)}; `ls {arguments.lessons}/*` lists them")
    for file in files:
        twin = file.with_suffix(".py")
        need(twin, f"the twin of {file.stem}", f"git checkout -- {twin}")
    chosen = [lesson for lesson in sources.lessons(arguments.lessons) if lesson.name in (names or [lesson.name])]
    need(arguments.python, "Python with LibTorch", "cmake --preset default")
    for lesson in chosen:
        need(arguments.bin / lesson.name, lesson.name, "cmake --build --preset default --target lessons")
    several = next((lesson.name for lesson in chosen if lesson.processes > 1), None)
    if several and not shutil.which("torchrun", path=variables(arguments)["PATH"]):
        refuse(f"{several} needs torchrun, which is neither beside {arguments.python} nor in the PATH; "
               f"`{arguments.python} -m pip install torch` installs it")
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("how", choices=["twins", "gpu"])
    parser.add_argument("names", nargs="*", help="names to compare (default: all)")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python with the same LibTorch")
    parser.add_argument("--lessons", type=pathlib.Path, default=sources.HERE, help="folder of the twins")
    parser.add_argument("--page", action="store_true", help="also compare with the page")
    parser.add_argument("--simgpu", type=pathlib.Path, help="sconce-simgpu, which simulates the GPUs")
    parser.add_argument("--gpus", type=int, help="number of simulated GPUs")
    parser.add_argument("--server", type=pathlib.Path, help="prefix of python_server.py's socket")
    parser.add_argument("--counter", type=pathlib.Path, help="the library count-operations")
    parser.add_argument("--counts", choices=["check", "show", "write"], default="check", help="(default: check)")
    parser.add_argument("--table", type=pathlib.Path, default=counting.TABLE, help="the counts, by lesson")
    arguments = parser.parse_intermixed_args()
    chosen = choose(arguments, arguments.names)
    if arguments.counter:
        need(arguments.counter, "the counter", "cmake --build --preset default --target count-operations")
    if arguments.simgpu:
        need(arguments.simgpu, "the simulated GPUs", "cmake --build --preset default --target sconce-simgpu")
    if arguments.how == "gpu" and arguments.simgpu is None:
        arguments.gpus = gpu_count()
        arguments.counter = None  # the table is for simulated GPUs, whose operators call other operators
    if arguments.how == "twins":
        arguments.gpus = 0
    if arguments.counter and arguments.gpus >= len(counting.MACHINES):
        refuse(f"counts are known with up to {len(counting.MACHINES) - 1} GPUs")
    if arguments.how == "gpu" and arguments.gpus == 0:
        print("needs a GPU, and this process sees none")
        return 1 if os.environ.get("SCONCE_REQUIRE_GPU") == "1" else 77
    compared = compare_on_gpu if arguments.how == "gpu" else compare_on_cpu
    try:
        equal = [compared(lesson, arguments) for lesson in chosen]
    except Failed as failure:
        if "PyTorch was built without libuv" in str(failure):  # like Debian's
            print("needs torchrun, which does not start with this PyTorch")
            return 77
        sys.exit(str(failure))
    print(f"{sum(equal)} of {len(equal)} lessons are correct")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
