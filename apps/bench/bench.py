"""Compares the speed of sconce with Python's on the same LibTorch, one workload after another.

    build/setup/torch-2.15.0/bin/python apps/bench/bench.py build/release/bin/sconce-bench

The Python that runs this script is the one compared with. The sides of a workload are processes that exist at the
same time, with one thread each. They first show that they compute the same numbers. Then they take turns,
A B C C B A, in rounds of about 0.2 s, so that other load on the machine slows all of them equally. A ratio is
another side's time divided by sconce's, and its interval is the 95 % interval of the median over the pairs.
A whole process is measured from its start to its check, and by its peak memory.

The limit is another side: loops that do the same work by only multiplying and adding in registers, or only
reading and writing the same memory, in the same turns. Its smallest time divided by sconce's is the share of
the limit that the workload reaches. A share above 1 is a measurement error and ends the run.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from math import comb
from pathlib import Path

from workloads import WORKLOADS

HERE = Path(__file__).parent
ROUND_SECONDS = 0.2
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


class Side:
    """A process that makes a workload and times calls of it."""

    def __init__(self, name, command):
        self.name = name
        self.values = []  # seconds per call, by round
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
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


def commands(workload, program):
    """The command of each side, sconce first."""
    name = workload.name.partition(":")[0]
    size = [str(workload.size)] if workload.size else []
    made = {"sconce": [program, name, *size]}
    for side in ("libtorch", "limit"):
        if getattr(workload, side):
            made[side] = [program, getattr(workload, side), *size]
    for variant in workload.floors:
        made.setdefault(variant, [sys.executable, str(HERE / "worker.py"), name, variant, *size])
    return made


def start_sides(workload, program):
    if workload.measure == "calls":
        return [Side(*side) for side in commands(workload, program).items()]
    return [WholeProcess(*side, workload.measure) for side in commands(workload, program).items()]


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
    checks = [side.check for side in sides if side.name != "limit"]
    if different(checks, workload.tolerance):
        sys.exit(f"bench: {workload.title}: expected the same numbers of all sides, got "
                 + ", ".join(f"{side.name} {side.check}" for side in sides))


def run_workload(workload, program, pairs):
    values = {}
    starts = min(workload.starts, pairs)
    for start in range(starts):
        sides = start_sides(workload, program)
        try:
            refuse_different(workload, sides)
            for side in sides:
                side.values = values.setdefault(side.name, [])
            calls = calls_of_a_round(sides) if workload.measure == "calls" else 1
            take_turns(sides, range(start, pairs, starts), calls)
        finally:
            for side in sides:
                side.close()
    return {"name": workload.name, "title": workload.title, "size": workload.size,
            "unit": "bytes" if workload.measure == "memory" else "seconds",
            "values": values,
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


HEADER = ["workload", "beside", "sconce", "ratio", "95 % interval", "at least", ""]


def table(header, lines):
    rule = ["---"] * len(header)
    return "".join(f"| {' | '.join(line)} |\n" for line in [header, rule, *lines])


GROWTH_HEADER = ["workload", "sizes", "sconce", "ratio beside Python's best", "below 1.1 from"]


def growth(results):
    """Yields a line for each workload that ran at several sizes, with the size from which C++ gains less than 10 %."""
    lines = {workload.grows: [] for workload in WORKLOADS if workload.grows}
    for workload, result in results:
        if workload.grows:
            lines[workload.grows].append(result)
    for title, made in lines.items():
        made.sort(key=lambda result: result["size"])
        ratios = [result["ratios"]["best"]["median"] for result in made]
        even = [f"{result['size']:,}" for result, of_size in zip(made, ratios) if of_size < 1.1]
        times = [readable(statistics.median(result["values"]["sconce"]), "seconds") for result in made]
        if len(made) > 1:
            yield [title, ", ".join(f"{result['size']}" for result in made), ", ".join(times),
                   ", ".join(f"{of_size:.2f}" for of_size in ratios),
                   even[0] if even else "none of these"]


def machine(program):
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(),
            "load": os.getloadavg()[0], "torch": version("torch"),
            "python": platform.python_version(), "program_bytes": os.path.getsize(program)}


def refuse_below(least, results):
    """Ends the run if sconce is less than this many times as fast as Python."""
    for result in results:
        for variant in ("default", "best"):
            median = result["ratios"].get(variant, {"median": least})["median"]
            if median < least:
                sys.exit(f"bench: {result['title']}: expected a ratio of at least {least:g} "
                         f"beside Python's {variant}, got {median:.2f}")


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description="Compares the speed and memory of sconce and Python on the same LibTorch.")
    parser.add_argument("program", help="path of sconce-bench")
    parser.add_argument("names", nargs="*", help="workloads to run, such as ops.add (default: all)")
    parser.add_argument("--pairs", type=int, default=15, metavar="N",
                        help="number of rounds of each side (default: 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for all times, as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="file for the tables, in Markdown")
    parser.add_argument("--least", type=float, default=0, metavar="RATIO",
                        help="end with an error if a ratio to Python is below this one")
    parsed = parser.parse_args(arguments)
    known = {workload.name for workload in WORKLOADS}
    unknown = set(parsed.names) - known
    if unknown:
        parser.error(f"expected workloads of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    if not os.access(parsed.program, os.X_OK):
        parser.error(f"expected a program, got {parsed.program}")
    if parsed.pairs < 1:
        parser.error(f"expected at least one pair, got {parsed.pairs}")
    parsed.program = os.path.abspath(parsed.program)
    return parsed


def main():
    arguments = parse()
    results, lines = [], []
    for workload in WORKLOADS:
        if arguments.names and workload.name not in arguments.names:
            continue
        if workload.gpu and not NVIDIA_DRIVER.exists():
            print(f"{workload.title}: not measured, without a GPU")
            continue
        results.append((workload, run_workload(workload, arguments.program, arguments.pairs)))
        for line in rows(*results[-1]):
            lines.append(line)
            print("  ".join(cell for cell in line if cell), flush=True)
    grown = list(growth(results))
    results = [result for _, result in results]
    if arguments.json:
        made = {"machine": machine(arguments.program), "results": results}
        arguments.json.write_text(json.dumps(made) + "\n")
    if arguments.table:
        arguments.table.write_text(table(HEADER, lines) + "\n" + table(GROWTH_HEADER, grown))
    refuse_below(arguments.least, results)


if __name__ == "__main__":
    main()
