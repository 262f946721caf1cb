"""Measures how long each public header takes to compile, as a share of the time of sconce/sconce.hpp.

    cmake --preset no-pch
    python3 apps/bench/headers.py build/no-pch

Each header is compiled alone, without a precompiled header and without generating code. The LibTorch headers
that it includes, directly or through other headers of sconce, are also compiled alone. "own" is the
difference. Times are processor times, which other load on the machine affects less than wall times.
"""

import argparse
import json
import re
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
UMBRELLA = "sconce/sconce.hpp"
MOST = {"sconce/devices.hpp": 0.10}  # share of the umbrella's time
MOST_OWN = 0.25  # share of the umbrella's time, except for these:
MAY_COST_MORE = re.compile(r"sconce/(nn/|trainer\.hpp|sconce\.hpp)")


def compiler(build):
    """Returns the command that compiles a source of the library, without the names of source and object."""
    entries = json.loads((build / "compile_commands.json").read_text())
    entry = next(entry for entry in entries if entry["file"].endswith("/src/devices.cpp"))
    words = shlex.split(entry["command"])
    del words[words.index("-o"):words.index("-o") + 2], words[words.index("-c"):]
    return words


def seconds(command, headers):
    """Returns the processor time of compiling these includes."""
    source = "".join(f"#include <{header}>\n" for header in headers)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=source, text=True,
                          capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"headers: {', '.join(headers)}: {done.stderr.strip().splitlines()[0]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def libtorch_headers(header, seen):
    """Returns the LibTorch headers that a header of sconce includes, directly or through other headers of sconce."""
    if header in seen:
        return set()
    seen.add(header)
    found = set()
    for name in re.findall(r'^#include [<"]([^>"]+)[>"]', (INCLUDE / header).read_text(), re.MULTILINE):
        if name.startswith("sconce/"):
            found |= libtorch_headers(name, seen)
        elif name.startswith(("torch/", "ATen/", "c10/")):
            found.add(name)
    return found


def measure(command, headers, runs):
    """Returns for each header the median time of it and of its LibTorch headers."""
    times = {}
    for header in headers:
        base = sorted(libtorch_headers(header, set()))
        pairs = [(seconds(command, [header]), seconds(command, base)) for _ in range(runs)]
        times[header] = [statistics.median(column) for column in zip(*pairs)]
    return times


def verdict(header, share, own):
    if share > MOST.get(header, 1):
        return f"above {MOST[header]:.0%}"
    return f"own above {MOST_OWN:.0%}" if own > MOST_OWN and not MAY_COST_MORE.match(header) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="build folder of the preset no-pch")
    parser.add_argument("headers", nargs="*", metavar="HEADER",
                        help="headers such as sconce/devices.hpp (default: all)")
    parser.add_argument("--runs", type=int, default=1, metavar="N",
                        help="number of runs, of which the median counts (default: 1)")
    arguments = parser.parse_args()
    headers = arguments.headers or sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.hpp"))
    if missing := [header for header in headers if not (INCLUDE / header).is_file()]:
        parser.error(f"expected public headers, got {', '.join(missing)}")
    if not (arguments.build / "compile_commands.json").is_file():
        parser.error(f"expected a configured build folder, got {arguments.build}")
    times = measure(compiler(arguments.build), dict.fromkeys([UMBRELLA, *headers]), arguments.runs)
    whole = times[UMBRELLA][0]
    print("| header | seconds | of the umbrella | own | |\n| --- | --- | --- | --- | --- |")
    verdicts = []
    for header, (all_of_it, base) in sorted(times.items(), key=lambda item: -item[1][0]):
        own = max(0, all_of_it - base) / whole
        verdicts.append(verdict(header, all_of_it / whole, own))
        print(f"| {header} | {all_of_it:.2f} | {all_of_it / whole:.0%} | {own:.0%} | {verdicts[-1]} |")
    sys.exit(1 if any(verdicts) else 0)


if __name__ == "__main__":
    main()
