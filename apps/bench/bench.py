"""Times sconce beside Python on the same LibTorch, one workload after the other.

    build/setup/torch-2.15.0/bin/python apps/bench/bench.py build/default/bin/sconce-bench

The Python to compare with is the one that runs this script. The sides of a workload are processes
that live side by side with one thread each. They first show that they compute the same numbers;
then they take turns, A B C C B A, in rounds of about 0.2 s, so that whatever else runs on the
machine slows all of them alike. A ratio is another side's time over that of sconce, its interval
the 95 % interval of the median over the pairs.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from math import comb
from pathlib import Path

from workloads import WORKLOADS

HERE = Path(__file__).parent
ROUND_SECONDS = 0.2


class Side:
    """A process that makes a workload and times calls of it."""

    def __init__(self, name, command):
        self.name = name
        self.seconds = []  # a call, by round
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.check = json.loads(self.read())

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"bench: {self.name} ended, exit code {self.process.wait()}")
        return line

    def run(self, calls):
        """Returns the seconds that one of these calls took."""
        print(calls, file=self.process.stdin, flush=True)
        return float(self.read()) / calls

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start_sides(workload, program):
    """The sides of a workload, sconce first."""
    worker = [sys.executable, str(HERE / "worker.py"), workload.name]
    size = [str(workload.size)] if workload.size else []
    sides = [Side("sconce", [program, workload.name, *size])]
    if workload.libtorch:
        sides.append(Side("libtorch", [program, workload.libtorch, *size]))
    for variant in workload.floors:
        if variant != "libtorch":
            sides.append(Side(variant, [*worker, variant, *size]))
    return sides


def different(checks, tolerance):
    """Whether the numbers of one side are not those of the first."""
    first = checks[0]
    return any(len(check) != len(first)
               or any(abs(a - b) > tolerance * max(1, abs(a)) for a, b in zip(first, check))
               for check in checks[1:])


def calls_of_a_round(sides):
    """So many calls that the slowest side needs about ROUND_SECONDS; it also warms all up."""
    calls = 1
    while True:
        slowest = max(side.run(calls) for side in sides) * calls
        if slowest > ROUND_SECONDS / 2:
            return max(1, round(calls * ROUND_SECONDS / slowest))
        calls *= 2 if slowest > ROUND_SECONDS / 20 else 10


def take_turns(sides, pairs):
    calls = calls_of_a_round(sides)
    for pair in range(pairs):
        for side in sides if pair % 2 == 0 else reversed(sides):
            side.seconds.append(side.run(calls))


def interval(values):
    """The 95 % interval of the median, by the order of the values: between which of them it lies
    with that probability, whatever they are distributed like."""
    ordered, n = sorted(values), len(values)
    probability, below = 0, 0  # that at most `below` of n values lie under the median
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


def run_workload(workload, program, pairs):
    sides = start_sides(workload, program)
    try:
        checks = [side.check for side in sides]
        if different(checks, workload.tolerance):
            sys.exit(f"bench: {workload.name}: expected the same numbers of all sides, got "
                     + ", ".join(f"{side.name} {side.check}" for side in sides))
        take_turns(sides, pairs)
    finally:
        for side in sides:
            side.close()
    ours = sides[0].seconds
    return {"name": workload.name, "size": workload.size,
            "seconds": {side.name: side.seconds for side in sides},
            "ratios": {side.name: ratio(side.seconds, ours) for side in sides[1:]}}


def rows(workload, result):
    """A line for each other side: its ratio beside the least one that is asked for."""
    for name, of_side in result["ratios"].items():
        low, high = of_side["interval"]
        floor = workload.floors.get(name)
        holds = floor is not None and floor <= of_side["median"] <= workload.most
        verdict = "" if floor is None else "holds" if holds else "does not hold"
        yield [workload.title, name, f"{1e6 * statistics.median(result['seconds']['sconce']):.4g}",
               f"{of_side['median']:.2f}", f"{low:.2f} to {high:.2f}",
               "" if floor is None else f"{floor:g}", verdict]


HEADER = ["workload", "beside", "sconce, µs", "ratio", "95 % interval", "at least", ""]


def table(lines):
    rule = ["---"] * len(HEADER)
    return "".join(f"| {' | '.join(line)} |\n" for line in [HEADER, rule, *lines])


def machine():
    import torch

    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(),
            "torch": torch.__version__, "python": platform.python_version()}


def main():
    parser = argparse.ArgumentParser(description="Times sconce beside Python.")
    parser.add_argument("program", help="sconce-bench")
    parser.add_argument("names", nargs="*", help="workloads such as ops.add; all without any")
    parser.add_argument("--pairs", type=int, default=15, help="rounds of each side")
    parser.add_argument("--json", type=Path, help="a file for all times")
    parser.add_argument("--table", type=Path, help="a file for the table")
    arguments = parser.parse_args()
    known = {workload.name for workload in WORKLOADS}
    unknown = set(arguments.names) - known
    if unknown:
        parser.error(f"expected workloads of {', '.join(sorted(known))}, got {', '.join(unknown)}")
    results, lines = [], []
    for workload in WORKLOADS:
        if arguments.names and workload.name not in arguments.names:
            continue
        results.append(run_workload(workload, arguments.program, arguments.pairs))
        for line in rows(workload, results[-1]):
            lines.append(line)
            print("  ".join(cell for cell in line if cell), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "results": results}) + "\n")
    if arguments.table:
        arguments.table.write_text(table(lines))


if __name__ == "__main__":
    main()
