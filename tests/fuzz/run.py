#!/usr/bin/env python3
"""Runs the fuzzers of build/fuzz, two at a time, and keeps the inputs that they find.

  run.py                       each fuzzer for two minutes
  run.py --minutes 30          half an hour for all of them together
  run.py torch_file picture    only these two

An input has up to 1 MB. More than 256 MB of memory is a failure.

A fuzzer starts with the inputs that are kept for the tests. New inputs go to build/fuzz/new/NAME, and
inputs that cause failures go to build/fuzz/found. The exit code is 1 if there is such an input.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/fuzz"
# LibTorch alone, with the sanitizers, uses 490 to 510 MB of resident memory.
LIBTORCH_MB, MEMORY_MB = 512, 256
NAMES = ["checkpoint", "command_line", "csv", "idx", "model_file", "picture", "program", "safetensors", "torch_file"]


def begin_with(name):
    return ROOT / ("tests/reference/pictures" if name == "picture" else f"tests/fuzz/corpus/{name}")


def fuzz(name, seconds):
    """Runs one fuzzer. Returns whether it ran without a failure."""
    new, found = BUILD / "new" / name, BUILD / "found"
    new.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        ran = subprocess.run(
            [BUILD / f"bin/fuzz-{name}", "-max_len=1048576", f"-malloc_limit_mb={MEMORY_MB}",
             f"-rss_limit_mb={LIBTORCH_MB + MEMORY_MB}", "-timeout=60", f"-max_total_time={seconds}",
             "-print_final_stats=1", f"-artifact_prefix={found}/{name}-", new, begin_with(name)],
            # The sanitizer's own memory, which contains freed blocks and a search for leaks at the end, would count.
            # Leaks caused by an input are detected during the run.
            env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": folder,
                 "ASAN_OPTIONS": "quarantine_size_mb=8:leak_check_at_exit=0"},
            text=True, errors="replace", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    runs = re.findall(r"number_of_executed_units: (\d+)", ran.stderr)
    if ran.returncode != 0:
        print(ran.stderr[-4000:])
    print(f"{name}: {runs[-1] if runs else 'no'} runs in {seconds} s, exit code {ran.returncode}", flush=True)
    return ran.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--minutes", type=float, help="time for all of them together")
    args = parser.parse_args()
    names = args.names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"expected names of {', '.join(NAMES)}, got {', '.join(sorted(unknown))}")
    if missing := [name for name in names if not (BUILD / f"bin/fuzz-{name}").exists()]:
        parser.error(f"not built by cmake --workflow --preset fuzz: {', '.join(missing)}")
    at_once = 2
    seconds = int(60 * args.minutes * at_once / len(names)) if args.minutes else 120
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        sys.exit(not all(list(pool.map(lambda name: fuzz(name, seconds), names))))


if __name__ == "__main__":
    main()
