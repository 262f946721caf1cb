"""Compares the speed of sconce with Python's on the same LibTorch, one workload after another.

    build/setup/torch-2.15.0/bin/python apps/bench/bench.py build/release/bin/sconce-bench steps.sgd

The Python that runs this script is the one compared with. The sides of a workload are processes that exist at the
same time, with one thread each (--threads). They first show that they compute the same numbers. Then they take turns,
A B C C B A, in rounds of about 0.2 s, so that other load on the machine slows all of them equally. A ratio is
another side's time divided by sconce's, and its interval is the 95 % interval of the median over the pairs.
A whole process is measured from its start to its check, and by its peak memory; an example, by the rate it prints.

A training step is measured in up to three forms of sconce: eager, captured (a CapturedStep), and compiled (a
CapturedStep that sconce compiles and keeps compiled). Other sides are compared with the fastest of them.

    ... bench.py --with compile,jax build/release/bin/sconce-bench steps.sgd

adds torch.compile of the model ("compile_model") and of the whole step in its default mode ("compile_step") and in the
mode max-autotune ("max_autotune"), and JAX with one step compiled ("jax_step") and with the whole loop in lax.scan
("jax_scan"), where a workload has these forms. JAX is installed into build/bench/jax; torch.compile needs a C++
compiler. The time from the start of a process to the end of its first call, in which it compiles, is listed separately.
No compiled code of an earlier run is used, unless TORCHINDUCTOR_FORCE_DISABLE_CACHES=0 is set.

    ... bench.py --all --json times.json build/release/bin/sconce-bench

measures every workload with every side. --json FILE continues a file of the same machine and the same code, workload by
workload, and refuses any other. Each result has the time at which it was measured and the machine's load before it.

The limit is another side: loops that do the same work by only multiplying and adding in registers, or only
reading and writing the same memory, in the same turns. Its smallest time divided by sconce's is the share of
the limit that the workload reaches. A share above 1 is a measurement error and ends the run.
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
from tables import firsts, rows, tables
from workloads import WORKLOADS

ROUND_SECONDS = 0.2


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
            side.values.append(float(f"{side.run(calls):.5g}"))


def refuse_different(workload, sides):
    compiled = {"compiled", *workload.compilers}
    exact = [side.check for side in sides if side.name not in {"limit", *compiled}]
    rounded = [sides[0].check, *(side.check for side in sides if side.name in compiled)]
    if different(exact, workload.tolerance) or different(rounded, workload.compiled_tolerance):
        sys.exit(f"bench: {workload.title}: expected the same numbers of all sides, got "
                 + ", ".join(f"{side.name} {side.check}" for side in sides))


def refuse_beyond_limit(workload, result):
    share = times.ratios(result).get("limit", {"median": 0})["median"]
    if share > 1:
        sys.exit(f"bench: {workload.title}: expected at most the limit of the machine, got {share:.3f} times as much")


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
    """Ends the run if sconce is less than this many times as fast as Python."""
    for result in results:
        of_sides = times.ratios(result)
        for variant in ("default", "best"):
            median = of_sides.get(variant, {"median": least})["median"]
            if median < least:
                sys.exit(f"bench: {result['title']}: expected a ratio of at least {least:g} "
                         f"beside Python's {variant}, got {median:.2f}")


class Parser(argparse.ArgumentParser):
    """Refuses in one line."""

    def error(self, message):
        self.exit(2, f"bench: {message}\n")


def make_parser():
    parser = Parser(description="Compares the speed and memory of sconce and Python on the same LibTorch.")
    parser.add_argument("program", nargs="?", default="", help="path of sconce-bench")
    parser.add_argument("names", nargs="*", help="workloads to run, such as ops.add (default: all)")
    parser.add_argument("--all", action="store_true", help="all workloads with all compilers, into --json")
    parser.add_argument("--pairs", type=int, default=15, metavar="N",
                        help="number of rounds of each side (default: 15)")
    parser.add_argument("--threads", type=int, default=1, metavar="N",
                        help="number of threads of each process (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all times; continued if it exists")
    parser.add_argument("--table", type=Path, metavar="FILE", help="file for the tables, in Markdown")
    parser.add_argument("--with", dest="compilers", default="", metavar="compile,jax",
                        help="compilers of Python to measure too: torch.compile, JAX, or both")
    parser.add_argument("--from", dest="times", type=Path, metavar="FILE",
                        help="write the tables of a file made by --json, and measure nothing")
    parser.add_argument("--least", type=float, default=0, metavar="RATIO",
                        help="end with an error if a ratio to Python is below this one")
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
                             f"got {found['machine'].get(key)}: name a new file")
        parsed.known = found["results"]


def parse(arguments=None):
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    check_names(parser, parsed)
    check_compilers(parser, parsed)
    if not parsed.times:
        check_run(parser, parsed)
    elif parsed.program or parsed.json:
        parser.error(f"expected no program, workloads or --json beside --from, got {parsed.program or '--json'}")
    else:
        parsed.times = read_times(parser, parsed.times, "--from")
    return parsed


def missing_for(workload):
    """What this machine lacks for the workload; "" if nothing."""
    if workload.gpu and not times.gpus():
        return "a GPU"
    if workload.needs and not find_spec(workload.needs):
        return workload.needs
    return workload.data if workload.data and not os.path.exists(workload.data) else ""


def show(workload, result):
    for line in rows(workload, result):
        print("  ".join(cell for cell in line if cell), flush=True)
    for _, name, first in firsts([(workload, result)]):
        print(f"{workload.title}  {name}  {first} to the end of the first call", flush=True)


def measure(arguments):
    """Runs the workloads that --json lacks, and returns all results."""
    results = list(arguments.known)
    done = {(result["name"], result["size"]) for result in results}
    for workload in WORKLOADS:
        if (arguments.names and workload.name not in arguments.names) or (workload.name, workload.size) in done:
            continue
        missing = missing_for(workload)
        if missing:
            print(f"{workload.title}: not measured, without {missing}")
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
