#!/usr/bin/env python3
"""Repeats tests in random order on an overloaded machine, to find tests that fail by chance.

`ctest --repeat until-fail:30` repeats tests too. This script also runs a busy loop on each core during the tests, and each
round runs every chosen test once.

  soak.py                           all tests of the preset default, 30 rounds
  soak.py --rounds 5 --minutes 60   at most 5 rounds and one hour
  soak.py --part 2/4                the second of four parts of the tests
  soak.py --name '^lesson-'         the tests whose names match
  soak.py --since REVISION          the tests that the changes since REVISION affect

Prints a line for each round, and the output of tests that failed. The exit code is 1 if a test failed.
"""
import argparse
import ctypes
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
BUILD = ROOT / "build/default"


def changed_files(since):
    names = subprocess.run(["git", "diff", "--name-only", since], cwd=ROOT, check=True, text=True,
                           capture_output=True).stdout
    return [pathlib.PurePosixPath(name) for name in names.splitlines()]


def source_of_cases(program):
    """Returns the source, relative to tests/, of each case of a Catch2 program."""
    listed = subprocess.run([program, "--list-tests", "--reporter", "xml"], check=True, text=True,
                            capture_output=True).stdout
    listed = listed[listed.index("<?xml"):]
    return {case.findtext("Name"): pathlib.Path(case.findtext("SourceInfo/File")).relative_to(TESTS)
            for case in xml.fromstring(listed).iter("TestCase")}


def read_tests():
    """Returns for each test its number, in the form that `ctest -I` accepts, and its name, labels, and sources."""
    listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, text=True,
                            capture_output=True).stdout
    programs, tests = {}, []
    for number, test in enumerate(json.loads(listed)["tests"], start=1):
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        program = test["command"][0]
        if pathlib.Path(program).name.startswith("test-"):
            if program not in programs:
                programs[program] = source_of_cases(program)
            of_case = programs[program]
            sources = [of_case[test["name"]]] if test["name"] in of_case else set(of_case.values())
        else:  # the scripts that the test runs
            paths = [pathlib.Path(word) for word in test["command"]]
            sources = [path.relative_to(TESTS) for path in paths if path.is_relative_to(TESTS)]
        tests.append({"number": number, "name": test["name"], "labels": properties.get("LABELS", []),
                      "is_fixture": "FIXTURES_SETUP" in properties or "FIXTURES_CLEANUP" in properties,
                      "sources": list(sources)})
    return tests


def mentions(source, file):
    text = (TESTS / source).read_text() if (TESTS / source).is_file() else ""
    return file.name in text or f"import {file.stem}" in text


def touches(file, test):
    """Returns whether a change to the file affects the test, based on the paths that headers, sources, and tests
    share."""
    top, *rest = file.parts
    sources, is_lesson = test["sources"], test["name"].startswith("lesson")
    if top in ("src", "include"):
        room = file.relative_to("src" if top == "src" else "include/sconce").parent
        return any(source.parent == pathlib.Path(room) for source in sources)
    if file.is_relative_to("apps/lessons"):
        return test["name"] == f"lesson-{file.parent.name}-{file.stem}"
    if top == "apps":
        return not is_lesson and any(source.parts[0] == "apps" for source in sources)
    if top != "tests" or file.name == "CMakeLists.txt":
        return False
    own = pathlib.Path(*rest)
    if own in sources or own.stem.endswith("_test"):
        return own in sources
    if file.suffix == ".cpp":  # a program that tests of the same folder start
        return any(source.parent == own.parent for source in sources)
    return any(mentions(source, file) for source in sources)


def choose(arguments):
    tests = [test for test in read_tests()
             if not test["is_fixture"] and not {"slow", "project"} & set(test["labels"])]
    if arguments.since:
        changed = changed_files(arguments.since)
        tests = [test for test in tests if any(touches(file, test) for file in changed)]
    if arguments.name:
        tests = [test for test in tests if re.search(arguments.name, test["name"])]
    part, parts = map(int, arguments.part.split("/"))
    return tests[part - 1::parts]


class Load:
    """Runs a busy loop on each core during its lifetime. The loops end with this process, even if it is killed."""

    def __enter__(self):
        die_with_parent = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        self.loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                       preexec_fn=die_with_parent) for _ in range(os.cpu_count())]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


def run(tests, seconds):
    """Runs the tests once, for at most this time. Returns whether all of them finished, the number of failed tests, and
    the output."""
    numbers = ",".join(str(test["number"]) for test in tests)
    # The first three numbers are the start, end, and stride of a range. Zeros select no range.
    command = ["ctest", "--test-dir", BUILD, "-j4", "--schedule-random", "--output-on-failure", "-I",
               f"0,0,0,{numbers}"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        is_whole = True
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            is_whole = False
            os.killpg(process.pid, signal.SIGTERM)
            output, _ = process.communicate()
    failed = re.findall(r"^ *\d+/\d+ Test +#\d+: .*\*\*\*(?!Skipped)", output, re.M)
    return is_whole, len(failed), output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, metavar="N",
                        help="number of runs of each test (default: 30)")
    parser.add_argument("--minutes", type=float, default=float("inf"), metavar="M",
                        help="stop after M minutes; tests under way do not count")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="run part K of N parts of the tests")
    parser.add_argument("--name", metavar="REGEX", help="run only tests whose names match")
    parser.add_argument("--since", metavar="REVISION",
                        help="run only tests that the changes since REVISION affect")
    arguments = parser.parse_args()
    tests, start = choose(arguments), time.monotonic()
    failed = 0
    print(f"{len(tests)} tests, {arguments.rounds} rounds", flush=True)
    with Load():
        for round_number in range(1, arguments.rounds + 1):
            left = 60 * arguments.minutes - (time.monotonic() - start)
            is_whole, failures, output = run(tests, left if math.isfinite(left) else None)
            failed += failures
            if failures:
                print(output, flush=True)
            how_far = "" if is_whole else " was stopped, for the time is up"
            print(f"round {round_number}{how_far}: {failed} failed so far, {time.monotonic() - start:.0f} s", flush=True)
            if not is_whole:
                break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
