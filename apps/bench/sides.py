"""The sides of a workload, which are processes that take turns running it in C++ or Python."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build/bench"
COMPILERS = ("compile", "jax")
JAX = "jax==0.10.2"
NOT_AVAILABLE = 3  # the exit code of sconce-bench if sconce replays a step that it should compile


class NotAvailable(SystemExit):
    """Raised for a compiled step that sconce replays. Ends the run, unless the step has just started."""


class Side:
    """A process that creates a workload and times calls to it."""

    threads = 1  # in each process

    def __init__(self, name, command):
        self.name = name
        self.values = []  # seconds per call in each round
        self.started = time.perf_counter()
        environment = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"} | os.environ | {
            "OMP_NUM_THREADS": str(Side.threads), "SCONCE_BENCH_NUMBERS": str(BUILD / "numbers.npz"),
            "XDG_CACHE_HOME": str(BUILD / "cache"),
            "SCONCE_BENCH_FILES": str(BUILD / "files")}
        self.process = subprocess.Popen(command, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.check = json.loads(self.read().replace("nan", "NaN"))

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            ends = NotAvailable if code == NOT_AVAILABLE and self.name == "compiled" else SystemExit
            raise ends(f"bench: {self.name} exited with code {code}")
        return line

    def run(self, calls):
        """Times this many calls and returns the number of seconds per call."""
        print(calls, file=self.process.stdin, flush=True)
        return float(self.read()) / calls

    def gpu_memory(self):
        """Returns the maximum number of bytes reserved by the GPU's allocator."""
        print(0, file=self.process.stdin, flush=True)
        return int(self.read())

    def first_call(self):
        """Makes one call and returns the number of seconds from the start of the process to the end of the call."""
        self.run(1)
        return time.perf_counter() - self.started

    def close(self):
        """Terminates the process and returns its peak memory in bytes."""
        self.process.stdin.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return 1024 * usage.ru_maxrss


class WholeProcess:
    """A side that starts a new process in each round and measures the time from its start to its check."""

    def __init__(self, name, command, measure):
        self.name, self.command, self.measure = name, command, measure
        self.values = []  # seconds or bytes in each round
        self.run(1)  # loads the libraries from disk into the page cache

    def run(self, _):
        start = time.perf_counter()
        side = Side(self.name, self.command)
        seconds = time.perf_counter() - start
        self.check = side.check
        peak = side.close()  # a child's peak starts at its parent's, so keep this script small
        return seconds if self.measure == "start" else peak

    def close(self):
        pass


class RatedProcess:
    """A side that runs an example program in each round and measures the time of a step.

    The last output of the example is its number of steps per second.
    """

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.values = []  # seconds in each round
        self.run(1)  # loads the libraries from disk into the page cache

    def run(self, _):
        environment = os.environ | {"OMP_NUM_THREADS": str(Side.threads)}
        done = subprocess.run(self.command, env=environment, text=True, capture_output=True)
        rate = re.search(r"([\d.]+) steps/s\n$", done.stderr)
        if done.returncode or not rate:
            sys.exit(f"bench: {self.name} exited with code {done.returncode}: expected '<number> steps/s' on standard error, "
                     f"got {done.stderr!r}")
        self.check = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", done.stdout)]
        return 1 / float(rate[1])

    def close(self):
        pass


def jax_python():
    """Returns the Python interpreter of an environment with JAX. Creates the environment if needed."""
    complete = BUILD / "jax/complete"
    if not complete.exists() or complete.read_text() != JAX:
        venv.create(BUILD / "jax", with_pip=True, clear=True)
        subprocess.run([BUILD / "jax/bin/python", "-m", "pip", "install", "--quiet", "--no-input",
                        "--disable-pip-version-check", JAX], check=True)
        complete.write_text(JAX)
    return str(BUILD / "jax/bin/python")


def compiler_of(side):
    """Returns the compiler used by a side that runs only with --with or --all, such as "jax_scan"."""
    return "jax" if side.startswith("jax") else "compile"


def python_command(workload, variant, size):
    """Returns the command that starts a Python side."""
    python, twin = sys.executable, workload.twin
    if compiler_of(variant) == "jax":
        python, twin = jax_python(), "jax_steps." + twin.replace(".", "_")
    return [python, str(HERE / "worker.py"), twin, variant, *size]


def commands(workload, program, compilers=()):
    """Returns the command for each side, starting with sconce."""
    if workload.measure == "rate":
        example = workload.name.partition(".")[2]
        return {"sconce": [str(Path(program).parent / "examples" / example)],
                "default": [sys.executable, str(HERE.parent / "examples" / f"{example}.py")]}
    size = [str(workload.size)] if workload.size else []
    made = {"sconce": [program, workload.twin, *size]}
    for form in workload.forms:
        made[form] = [program, f"{workload.twin}_{form}", *size]
    for side in ("libtorch", "limit"):
        if getattr(workload, side):
            made[side] = [program, getattr(workload, side), *size]
    for variant in (*workload.floors, *workload.compilers):
        if variant in workload.floors or compiler_of(variant) in compilers:
            made.setdefault(variant, python_command(workload, variant, size))
    return made


def write_inputs(workload, compilers):
    """Writes the files that the sides of the workload read."""
    worker, size = [sys.executable, str(HERE / "worker.py"), workload.twin], str(workload.size)
    if "jax" in compilers and any(compiler_of(side) == "jax" for side in workload.compilers):
        Side("numbers", [*worker, "numbers", size]).close()
    if workload.files:
        Side("files", [*worker, "files", size]).close()


def started(workload, name, command, compilers):
    """Starts a side and returns it, or None if it is a compiled step that sconce replays."""
    try:
        side = Side(name, command)
        # An epoch compiles its step in the first call.
        side.first = side.first_call() if compilers or name == "compiled" else None
        return side
    except NotAvailable:
        print(f"{workload.title}: {name} is not available", flush=True)
        return None


def start_sides(workload, program, compilers=()):
    made = commands(workload, program, compilers)
    if os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") != "0":
        shutil.rmtree(BUILD / "cache", ignore_errors=True)
    if workload.measure == "rate":
        return [RatedProcess(*side) for side in made.items()]
    if workload.measure != "calls":
        return [WholeProcess(*side, workload.measure) for side in made.items()]
    write_inputs(workload, compilers)
    return [side for name, command in made.items() if (side := started(workload, name, command, compilers))]
