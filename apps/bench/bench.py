"""Compares the speed of sconce with Python's on the same LibTorch, one workload after another.

    build/setup/torch-2.15.0/bin/python apps/bench/bench.py build/release/bin/sconce-bench

The Python that runs this script is the one compared with. The sides of a workload are processes that exist at the
same time, with one thread each (--threads). They first show that they compute the same numbers. Then they take turns,
A B C C B A, in rounds of about 0.2 s, so that other load on the machine slows all of them equally. A ratio is
another side's time divided by sconce's, and its interval is the 95 % interval of the median over the pairs.
A whole process is measured from its start to its check, and by its peak memory.

    ... bench.py --with compile,jax build/release/bin/sconce-bench steps.sgd

adds torch.compile of the model ("compile_model") and of the whole step ("compile_step"), and JAX with one step
compiled ("jax_step") and with the whole loop in lax.scan ("jax_scan"), where a workload has these forms. JAX is
installed into build/bench/jax; torch.compile needs a C++ compiler. The time from the start of a process to the end of
its first call, in which it compiles, is apart. No compiled code of an earlier run is used, unless
TORCHINDUCTOR_FORCE_DISABLE_CACHES=0 is set. A workload NAME_compiled is a CapturedStep that sconce compiles; it is
compared with the replay ("captured") too. Its packages are in build/bench/cache.

The limit is another side: loops that do the same work by only multiplying and adding in registers, or only
reading and writing the same memory, in the same turns. Its smallest time divided by sconce's is the share of
the limit that the workload reaches. A share above 1 is a measurement error and ends the run.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import venv
from importlib.metadata import version
from importlib.util import find_spec
from math import comb
from pathlib import Path

from workloads import WORKLOADS

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build/bench"
ROUND_SECONDS = 0.2
COMPILED = {"compile": ["compile_model", "compile_step"], "jax": ["jax_step", "jax_scan"]}  # sides by compiler
JAX = "jax==0.10.2"
NVIDIA_DRIVER = Path("/proc/driver/nvidia")


class Side:
    """A process that makes a workload and times calls of it."""

    threads = 1  # of each process

    def __init__(self, name, command):
        self.name = name
        self.values = []  # seconds per call, by round
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
            sys.exit(f"bench: {self.name} ended, exit code {self.process.wait()}")
        return line

    def run(self, calls):
        """Returns the seconds per call, measured over this many calls."""
        print(calls, file=self.process.stdin, flush=True)
        return float(self.read()) / calls

    def gpu_memory(self):
        """Returns the most bytes that the GPU's allocator has reserved."""
        print(0, file=self.process.stdin, flush=True)
        return int(self.read())

    def first_call(self):
        """Makes a call and returns the seconds from the start of the process to its end."""
        self.run(1)
        return time.perf_counter() - self.started

    def close(self):
        """Ends the process and returns its peak memory in bytes."""
        self.process.stdin.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return 1024 * usage.ru_maxrss


class WholeProcess:
    """A side that starts a new process in each round, measured from its start to its check."""

    def __init__(self, name, command, measure):
        self.name, self.command, self.measure = name, command, measure
        self.values = []  # seconds or bytes, by round
        self.run(1)  # loads the libraries from disk into the page cache

    def run(self, _):
        start = time.perf_counter()
        side = Side(self.name, self.command)
        seconds = time.perf_counter() - start
        self.check = side.check
        peak = side.close()  # a child's peak begins with its parent's, so this script must stay small
        return seconds if self.measure == "start" else peak

    def close(self):
        pass


def jax_python():
    """The Python of an environment with JAX, which is made if needed."""
    complete = BUILD / "jax/complete"
    if not complete.exists() or complete.read_text() != JAX:
        venv.create(BUILD / "jax", with_pip=True, clear=True)
        subprocess.run([BUILD / "jax/bin/python", "-m", "pip", "install", "--quiet", "--no-input",
                        "--disable-pip-version-check", JAX], check=True)
        complete.write_text(JAX)
    return str(BUILD / "jax/bin/python")


def commands(workload, program, compilers=()):
    """The command of each side, sconce first."""
    name, worker = workload.name.partition(":")[0], str(HERE / "worker.py")
    size = [str(workload.size)] if workload.size else []
    made = {"sconce": [program, name, *size]}
    if name != workload.twin:
        made["eager"] = [program, workload.twin, *size]
    if name.endswith("_compiled"):
        made["captured"] = [program, f"{workload.twin}_captured", *size]
    for side in ("libtorch", "limit"):
        if getattr(workload, side):
            made[side] = [program, getattr(workload, side), *size]
    for variant in workload.floors:
        made.setdefault(variant, [sys.executable, worker, workload.twin, variant, *size])
    for compiler in compilers:
        python, twin = sys.executable, workload.twin
        if compiler == "jax":
            python, twin = jax_python(), "jax_steps." + twin.replace(".", "_")
        for variant in COMPILED[compiler]:
            made[variant] = [python, worker, twin, variant, *size]
    return made


def start_sides(workload, program, compilers=()):
    made = commands(workload, program, compilers)
    if os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") != "0":
        shutil.rmtree(BUILD / "cache", ignore_errors=True)
    if workload.measure != "calls":
        return [WholeProcess(*side, workload.measure) for side in made.items()]
    if "jax" in compilers:
        Side("numbers", [sys.executable, str(HERE / "worker.py"), workload.twin, "numbers", str(workload.size)]).close()
    if workload.files:
        Side("files", [sys.executable, str(HERE / "worker.py"), workload.twin, "files", str(workload.size)]).close()
    sides = []
    for side in made.items():
        sides.append(Side(*side))
        if compilers:
            sides[-1].first = sides[-1].first_call()
    return sides


def different(checks, tolerance):
    """Whether any side's numbers differ from the first side's."""
    first = checks[0]
    return any(len(check) != len(first)
               or any(not abs(a - b) <= tolerance * max(1, abs(a)) for a, b in zip(first, check))
               for check in checks)


def calls_of_a_round(sides):
    """Returns the number of calls for which the slowest side needs about ROUND_SECONDS. Also warms up all sides."""
    calls = 1
    while True:
        slowest = max(side.run(calls) for side in sides) * calls
        if slowest > ROUND_SECONDS / 2:
            return max(1, round(calls * ROUND_SECONDS / slowest))
        calls *= 2 if slowest > ROUND_SECONDS / 20 else 10


def take_turns(sides, pairs, calls):
    for pair in pairs:
        for side in sides if pair % 2 == 0 else reversed(sides):
            side.values.append(side.run(calls))


def interval(values):
    """The 95 % interval of the median from the order statistics: the values between which the median lies
    with that probability, for any distribution.
    """
    ordered, n = sorted(values), len(values)
    probability, below = 0, 0  # that at most `below` of n values are less than the median
    while True:
        probability += comb(n, below) / 2**n
        if probability > 0.025:
            break
        below += 1
    return ordered[max(0, below - 1)], ordered[min(n - 1, n - below)]


def ratio(times, ours):
    """How many times as fast as another side sconce is: the median and its interval."""
    ratios = [theirs / own for theirs, own in zip(times, ours)]
    return {"median": statistics.median(ratios), "interval": interval(ratios)}


def ratios_of(workload, sides):
    ours = sides[0].values
    made = {side.name: ratio(side.values, ours) for side in sides[1:] if side.name != "limit"}
    for side in sides:
        if side.name == "limit":
            made["limit"] = ratio([min(side.values)] * len(ours), ours)
    share = made.get("limit", {"median": 0})["median"]
    if share > 1:
        sys.exit(f"bench: {workload.title}: expected at most the limit of the machine, "
                 f"got {share:.3f} times as much")
    return made


def refuse_different(workload, sides):
    compiled = sum(COMPILED.values(), [])
    exact = [side.check for side in sides if side.name not in ("limit", *compiled)]
    rounded = [sides[0].check, *(side.check for side in sides if side.name in compiled)]
    if different(exact, workload.tolerance) or different(rounded, workload.compiled_tolerance):
        sys.exit(f"bench: {workload.title}: expected the same numbers of all sides, got "
                 + ", ".join(f"{side.name} {side.check}" for side in sides))


def run_workload(workload, program, pairs, compilers=()):
    compilers = [compiler for compiler in compilers if compiler in workload.compilers]
    values, first, gpu_memory = {}, {}, {}
    starts = min(workload.starts, pairs)
    for start in range(starts):
        sides = start_sides(workload, program, compilers)
        try:
            refuse_different(workload, sides)
            for side in sides:
                side.values = values.setdefault(side.name, [])
                if compilers:
                    first[side.name] = side.first
            calls = calls_of_a_round(sides) if workload.measure == "calls" else 1
            take_turns(sides, range(start, pairs, starts), calls)
            if workload.gpu:
                gpu_memory = {side.name: side.gpu_memory() for side in sides}
        finally:
            for side in sides:
                side.close()
    return {"name": workload.name, "title": workload.title, "size": workload.size,
            "unit": "bytes" if workload.measure == "memory" else "seconds",
            "values": values,
            "first": first,
            "gpu_memory": gpu_memory,
            "ratios": ratios_of(workload, sides)}


def readable(value, unit):
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    scale, name = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    return f"{value * scale:.3g} {name}"


def rows(workload, result):
    """Yields a line for each other side, with its ratio and the required one."""
    ours = readable(statistics.median(result["values"]["sconce"]), result["unit"])
    for name, of_side in result["ratios"].items():
        low, high = of_side["interval"]
        floor = workload.floors.get(name)
        verdict = ""
        if floor is not None:
            holds = floor <= of_side["median"] <= workload.most and low >= workload.lower_end
            verdict = "holds" if holds else "does not hold"
        yield [workload.title, name, ours, f"{of_side['median']:.2f}", f"{low:.2f} to {high:.2f}",
               "" if floor is None else f"{floor:.3g}", verdict]


HEADER = ["workload", "against", "sconce", "ratio", "95 % interval", "at least", ""]


def table(header, lines):
    rule = ["---"] * len(header)
    return "".join(f"| {' | '.join(line)} |\n" for line in [header, rule, *lines])


SLOWER_HEADER = ["workload", "against", "sconce", "ratio", "95 % interval"]


def slower(results):
    """Returns the lines of `rows` in which sconce is slower beyond noise, the slowest first."""
    lost = [(result["ratios"][line[1]]["median"], line[:5]) for workload, result in results
            for line in rows(workload, result)
            if line[1] != "limit" and result["ratios"][line[1]]["interval"][1] < 1]
    return [line for _, line in sorted(lost)]


FIRST_HEADER = ["workload", "side", "start to first call"]


def firsts(results):
    """Yields a line for each side whose first call was measured."""
    for _, result in results:
        for name, seconds in result.get("first", {}).items():
            yield [result["title"], name, readable(seconds, "seconds")]


GPU_MEMORY_HEADER = ["workload", "side", "most GPU memory reserved"]


def gpu_memories(results):
    """Yields a line for each side of a workload on a GPU."""
    for _, result in results:
        for name, size in result.get("gpu_memory", {}).items():
            yield [result["title"], name, readable(size, "bytes")]


GROWTH_HEADER = ["workload", "sizes", "sconce", "ratio to the faster eager Python", "below 1.1 from"]


def growth(results):
    """Yields a line for each workload that ran at several sizes, with the size from which C++ gains less than 10 %."""
    lines = {workload.grows: [] for workload in WORKLOADS if workload.grows}
    for workload, result in results:
        if workload.grows:
            lines[workload.grows].append(result)
    for title, made in lines.items():
        made.sort(key=lambda result: result["size"])
        ratios = [min(result["ratios"][side]["median"] for side in ("default", "best")) for result in made]
        even = [f"{result['size']:,}" for result, of_size in zip(made, ratios) if of_size < 1.1]
        times = [readable(statistics.median(result["values"]["sconce"]), "seconds") for result in made]
        if len(made) > 1:
            yield [title, ", ".join(f"{result['size']}" for result in made), ", ".join(times),
                   ", ".join(f"{of_size:.2f}" for of_size in ratios),
                   even[0] if even else "none of these"]


def gpus():
    """The names of the GPUs and the version of their driver, from the driver's files; nothing without a driver."""
    if not (NVIDIA_DRIVER / "version").exists():
        return {}
    of_all = [file.read_text() for file in sorted(NVIDIA_DRIVER.glob("gpus/*/information"))]
    driver = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", (NVIDIA_DRIVER / "version").read_text())
    return {"gpus": re.findall(r"^Model:\s*(.*\S)", "".join(of_all), re.M), "driver": driver[1] if driver else "unknown"}


def machine(program):
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(),
            "threads": Side.threads, "load": os.getloadavg()[0], "torch": version("torch"),
            "python": platform.python_version(), "program_bytes": os.path.getsize(program)} | gpus()


def refuse_below(least, results):
    """Ends the run if sconce is less than this many times as fast as Python."""
    for result in results:
        for variant in ("default", "best"):
            median = result["ratios"].get(variant, {"median": least})["median"]
            if median < least:
                sys.exit(f"bench: {result['title']}: expected a ratio of at least {least:g} "
                         f"beside Python's {variant}, got {median:.2f}")


class Parser(argparse.ArgumentParser):
    """Refuses in one line."""

    def error(self, message):
        self.exit(2, f"bench: {message}\n")


def times_of(parser, parsed):
    """The workloads of --from with their results."""
    if parsed.program or parsed.json:
        parser.error(f"expected no program, workloads or --json beside --from, got {parsed.program or '--json'}")
    try:
        return list(read_back(parsed.times))
    except OSError as error:
        parser.error(f"--from: {parsed.times}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        parser.error(f"--from: {parsed.times}: expected a file made by --json, got another")


def parse(arguments=None):
    parser = Parser(
        description="Compares the speed and memory of sconce and Python on the same LibTorch.")
    parser.add_argument("program", nargs="?", default="", help="path of sconce-bench")
    parser.add_argument("names", nargs="*", help="workloads to run, such as ops.add (default: all)")
    parser.add_argument("--pairs", type=int, default=15, metavar="N",
                        help="number of rounds of each side (default: 15)")
    parser.add_argument("--threads", type=int, default=1, metavar="N",
                        help="number of threads of each process (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all times, as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="file for the tables, in Markdown")
    parser.add_argument("--with", dest="compilers", default="", metavar="compile,jax",
                        help="compilers of Python to measure too: torch.compile, JAX, or both")
    parser.add_argument("--from", dest="times", type=Path, metavar="FILE",
                        help="write the tables of a file made by --json, and measure nothing")
    parser.add_argument("--least", type=float, default=0, metavar="RATIO",
                        help="end with an error if a ratio to Python is below this one")
    parsed = parser.parse_args(arguments)
    known = {workload.name for workload in WORKLOADS}
    unknown = set(parsed.names) - known
    if unknown:
        parser.error(f"expected workloads of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    parsed.compilers = [name for name in parsed.compilers.split(",") if name]
    unknown = set(parsed.compilers) - set(COMPILED)
    if unknown:
        parser.error(f"expected --with {','.join(COMPILED)} or one of them, got {', '.join(sorted(unknown))}")
    if "compile" in parsed.compilers and not shutil.which(os.environ.get("CXX", "g++")):
        parser.error("expected a C++ compiler for --with compile, got none: install g++ or set CXX")
    if parsed.times:
        parsed.times = times_of(parser, parsed)
        return parsed
    if not os.path.isfile(parsed.program) or not os.access(parsed.program, os.X_OK):
        parser.error(f"expected a program, got {parsed.program}")
    if parsed.pairs < 1:
        parser.error(f"expected at least one pair, got {parsed.pairs}")
    if not 1 <= parsed.threads <= os.cpu_count():
        parser.error(f"expected 1 to {os.cpu_count()} threads, got {parsed.threads}")
    parsed.program = os.path.abspath(parsed.program)
    return parsed


def missing_for(workload):
    """What this machine lacks for the workload; "" if nothing."""
    if workload.gpu and not gpus():
        return "a GPU"
    if workload.needs and not find_spec(workload.needs):
        return workload.needs
    return workload.data if workload.data and not os.path.exists(workload.data) else ""


def measured(arguments):
    """Yields each workload to run with its result."""
    for workload in WORKLOADS:
        if arguments.names and workload.name not in arguments.names:
            continue
        missing = missing_for(workload)
        if missing:
            print(f"{workload.title}: not measured, without {missing}")
            continue
        yield workload, run_workload(workload, arguments.program, arguments.pairs, arguments.compilers)


def read_back(file):
    """Yields each workload of a file made by --json with its result."""
    known = {(workload.name, workload.size): workload for workload in WORKLOADS}
    for result in json.loads(file.read_text())["results"]:
        yield known[result["name"], result["size"]], result


def tables(lines, results):
    made = [(SLOWER_HEADER, slower(results)), (HEADER, lines), (FIRST_HEADER, list(firsts(results))),
            (GPU_MEMORY_HEADER, list(gpu_memories(results))), (GROWTH_HEADER, list(growth(results)))]
    return "\n".join(table(header, of_header) for header, of_header in made if of_header)


def main():
    arguments = parse()
    Side.threads = arguments.threads
    results, lines, made = [], [], []
    for workload, result in measured(arguments) if arguments.times is None else arguments.times:
        results.append((workload, result))
        for line in rows(workload, result):
            lines.append(line)
            print("  ".join(cell for cell in line if cell), flush=True)
        for _, name, first in firsts(results[-1:]):
            print(f"{workload.title}  {name}  {first} to the end of the first call", flush=True)
        made.append(result)
        if arguments.json:  # after each workload, so that an interrupted run keeps its times
            text = json.dumps({"machine": machine(arguments.program), "results": made})
            arguments.json.write_text(text + "\n")
    if arguments.table:
        arguments.table.write_text(tables(lines, results))
    refuse_below(arguments.least, made)


if __name__ == "__main__":
    main()
