"""Compares the speed of sconce and Python on the same LibTorch, one workload at a time.

    build/setup/torch-2.15.0/bin/python apps/bench/bench.py build/release/bin/sconce-bench steps.sgd

sconce is compared with the Python that runs this script. The sides of a workload are concurrent processes, with one
thread each (--threads). First, the script checks that all sides compute the same numbers. Then the sides take turns, in
the order A B C C B A, in rounds of about 0.2 s, so that other load on the machine slows all of them equally. A ratio is
another side's time divided by sconce's, and its interval is the 95% interval of the median over the pairs. For a whole
process, the script measures the time from its start to its check, and its peak memory. For an example program, the
script uses the rate that the program prints.

Up to three forms of a training step in sconce are measured: eager, captured (a CapturedStep), and compiled (a
CapturedStep that sconce compiles and keeps compiled). The other sides are compared with the fastest form.

    ... bench.py --with compile,jax build/release/bin/sconce-bench steps.sgd

adds torch.compile of the model ("compile_model") and of the whole step in its default mode ("compile_step") and in
max-autotune mode ("max_autotune"), and JAX with one compiled step ("jax_step") and with the whole loop in lax.scan
("jax_scan"), if a workload supports these forms. JAX is installed into build/bench/jax; torch.compile needs a C++
compiler. Because the first call in a process includes compilation, the time from the start of the process to the end of
that call is reported separately. Compiled code from an earlier run is not used unless
TORCHINDUCTOR_FORCE_DISABLE_CACHES=0 is set.

    ... bench.py --all --json times.json build/release/bin/sconce-bench

measures every workload with every side. --json FILE resumes a file written on the same machine with the same code, one
workload at a time, and rejects any other file. Each result records when it was measured and the load on the machine
beforehand.

The limit is an additional side. Its loops represent the same work, but they only multiply and add in registers, or only
read and write the same memory. It takes turns with the other sides. The shortest time of the limit divided by sconce's
time is the share of the limit that the workload reaches. A share above 1 is a measurement error and ends the run.
"""

import argparse
import datetime
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import times
from sides import COMPILERS, Side, start_sides
from tables import readable, rows, tables
from workloads import WORKLOADS

ROUND_SECONDS = 0.2


def different(checks, tolerance):
    """Returns whether the numbers from any side differ from the first side's."""
    first = checks[0]
    return any(len(check) != len(first)
               or any(not abs(a - b) <= tolerance * max(1, abs(a)) for a, b in zip(first, check))
               for check in checks)


def calls_of_a_round(sides):
    """Returns the number of calls that take the slowest side about ROUND_SECONDS. Also warms up all sides."""
    calls = 1
    while True:
        slowest = max(side.run(calls) for side in sides) * calls
        if slowest > ROUND_SECONDS / 2:
            return max(1, round(calls * ROUND_SECONDS / slowest))
        calls *= 2 if slowest > ROUND_SECONDS / 20 else 10


def take_turns(sides, pairs, calls):
    for pair in pairs:
        for side in sides if pair % 2 == 0 else reversed(sides):
            side.values.append(float(f"{side.run(calls):.5g}"))


def refuse_different(workload, sides):
    compiled = {"compiled", *workload.compilers}
    exact = [side.check for side in sides if side.name not in {"limit", *compiled}]
    rounded = [sides[0].check, *(side.check for side in sides if side.name in compiled)]
    if different(exact, workload.tolerance) or different(rounded, workload.compiled_tolerance):
        sys.exit(f"bench: {workload.title}: expected the same numbers from all sides, got "
                 + ", ".join(f"{side.name} {side.check}" for side in sides))


def refuse_beyond_limit(workload, result):
    share = times.ratios(result).get("limit", {"median": 0})["median"]
    if share > 1:
        sys.exit(f"bench: {workload.title}: expected at most the machine's limit, got {share:.3f} times the limit")


def run_workload(workload, program, pairs, compilers=()):
    values, first, gpu_memory = {}, {}, {}
    now, load = datetime.datetime.now().isoformat(timespec="minutes"), round(os.getloadavg()[0], 2)
    starts = min(workload.starts, pairs)
    for start in range(starts):
        sides = start_sides(workload, program, compilers)
        try:
            refuse_different(workload, sides)
            for side in sides:
                side.values = values.setdefault(side.name, [])
                if compilers and workload.measure == "calls":
                    first[side.name] = float(f"{side.first:.3g}")
            calls = calls_of_a_round(sides) if workload.measure == "calls" else 1
            take_turns(sides, range(start, pairs, starts), calls)
            if workload.gpu:
                gpu_memory = {side.name: side.gpu_memory() for side in sides}
        finally:
            for side in sides:
                side.close()
    result = {"name": workload.name, "title": workload.title, "size": workload.size,
              "unit": "bytes" if workload.measure == "memory" else "seconds", "time": now, "load": load,
              "values": values, "first": first, "gpu_memory": gpu_memory}
    refuse_beyond_limit(workload, result)
    return result


def refuse_below(least, results):
    """Exits if a ratio to Python is below `least`."""
    for result in results:
        of_sides = times.ratios(result)
        for variant in ("default", "best"):
            median = of_sides.get(variant, {"median": least})["median"]
            if median < least:
                sys.exit(f"bench: {result['title']}: expected a ratio of at least {least:g} "
                         f"to Python's {variant}, got {median:.2f}")


class Parser(argparse.ArgumentParser):
    """Prints an error as a single line."""

    def error(self, message):
        self.exit(2, f"bench: {message}\n")


def make_parser():
    parser = Parser(description="Compares the speed and memory of sconce and Python on the same LibTorch.")
    parser.add_argument("program", nargs="?", default="", help="path to sconce-bench")
    parser.add_argument("names", nargs="*", help="workloads to run, such as ops.add (default: all)")
    parser.add_argument("--all", action="store_true", help="measure all workloads with all compilers, and write to --json")
    parser.add_argument("--pairs", type=int, default=15, metavar="N",
                        help="number of rounds for each side (default: 15)")
    parser.add_argument("--threads", type=int, default=1, metavar="N",
                        help="number of threads in each process (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all times; continued if it exists")
    parser.add_argument("--table", type=Path, metavar="FILE", help="file for the tables, in Markdown")
    parser.add_argument("--with", dest="compilers", default="", metavar="compile,jax",
                        help="also measure Python compilers: torch.compile, JAX, or both")
    parser.add_argument("--from", dest="times", type=Path, metavar="FILE",
                        help="write the tables for a file from --json without measuring anything")
    parser.add_argument("--least", type=float, default=0, metavar="RATIO",
                        help="end with an error if a ratio to Python is below RATIO")
    return parser


def read_times(parser, file, option):
    try:
        return times.read(file)
    except OSError as error:
        parser.error(f"{option}: {file}: {error.strerror}")
    except ValueError as error:
        parser.error(f"{option}: {error}")


def check_compilers(parser, parsed):
    parsed.compilers = list(COMPILERS) if parsed.all else [name for name in parsed.compilers.split(",") if name]
    unknown = set(parsed.compilers) - set(COMPILERS)
    if unknown:
        parser.error(f"expected --with {','.join(COMPILERS)} or one of them, got {', '.join(sorted(unknown))}")
    if "compile" in parsed.compilers and not shutil.which(os.environ.get("CXX", "g++")):
        parser.error("expected a C++ compiler for torch.compile, got none: install g++ or set CXX")


def check_names(parser, parsed):
    known = {workload.name for workload in WORKLOADS}
    unknown = set(parsed.names) - known
    if unknown:
        parser.error(f"expected workloads of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    if parsed.all and (parsed.names or not parsed.json):
        parser.error(f"expected --all with --json FILE and no names, got {parsed.names or 'no --json'}")


def check_run(parser, parsed):
    if not os.path.isfile(parsed.program) or not os.access(parsed.program, os.X_OK):
        parser.error(f"expected a program, got {parsed.program}")
    if parsed.pairs < 1:
        parser.error(f"expected at least one pair, got {parsed.pairs}")
    if not 1 <= parsed.threads <= os.cpu_count():
        parser.error(f"expected 1 to {os.cpu_count()} threads, got {parsed.threads}")
    if not find_spec("torch"):
        parser.error(f"expected a Python with torch, got {sys.executable}")
    parsed.program = os.path.abspath(parsed.program)
    parsed.machine = times.machine(parsed.program, parsed.threads)
    parsed.known = []
    if parsed.json and parsed.json.exists():
        found = read_times(parser, parsed.json, "--json")
        for key, value in parsed.machine.items():
            if found["machine"].get(key) != value:
                parser.error(f"--json: {parsed.json}: expected times with the {key} {value}, "
                             f"got {found['machine'].get(key)}: specify a new file")
        parsed.known = found["results"]


def parse(arguments=None):
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    check_names(parser, parsed)
    check_compilers(parser, parsed)
    if not parsed.times:
        check_run(parser, parsed)
    elif parsed.program or parsed.json:
        parser.error(f"expected no program, workloads, or --json with --from, got {parsed.program or '--json'}")
    else:
        parsed.times = read_times(parser, parsed.times, "--from")
    return parsed


def missing_for(workload):
    """Returns what the workload needs but this machine lacks, or "" if nothing is missing."""
    if workload.gpu and not times.gpus():
        return "a GPU"
    if workload.needs and not find_spec(workload.needs):
        return workload.needs
    return workload.data if workload.data and not os.path.exists(workload.data) else ""


def show(workload, result):
    for line in rows(workload, result):
        print("  ".join(cell for cell in line if cell), flush=True)
    for name, seconds in result.get("first", {}).items():
        print(f"{workload.title}  {name}  {readable(seconds, 'seconds')} to the end of the first call", flush=True)


def measure(arguments):
    """Runs the workloads that are missing from --json, and returns all of the results."""
    results = list(arguments.known)
    done = {(result["name"], result["size"]) for result in results}
    for workload in WORKLOADS:
        if (arguments.names and workload.name not in arguments.names) or (workload.name, workload.size) in done:
            continue
        missing = missing_for(workload)
        if missing:
            print(f"{workload.title}: not measured, because it needs {missing}")
            continue
        results.append(run_workload(workload, arguments.program, arguments.pairs, arguments.compilers))
        show(workload, results[-1])
        if arguments.json:
            times.write(arguments.json, arguments.machine, results)
    return results


def main():
    arguments = parse()
    Side.threads = arguments.threads
    if arguments.times:
        results = arguments.times["results"]
        for workload, result in times.paired(results):
            show(workload, result)
    else:
        results = measure(arguments)
    if arguments.table:
        arguments.table.write_text(tables(times.paired(results)))
    refuse_below(arguments.least, results)


if __name__ == "__main__":
    main()
