#!/usr/bin/env python3
"""Checks that each comparison with Python in commit f48842a has a successor that compares at least as much and is not
slow.

    comparisons.py BUILD          reads the sources and lists the tests of BUILD, which takes a second
    comparisons.py BUILD --run    also runs the cases, and compares the numbers of their assertions, which takes minutes

tests/comparisons_of_f48842a.txt lists the comparisons of that commit, in columns separated by tabs:
    case NAME STATED ASSERTIONS   a Catch2 case: the number of compared items that its source states, and its assertions
    slow NAME STATED ASSERTIONS   a case that was already slow, which is not run
    reference FILE LINES          a file of numbers from Python
    ctests PREFIX COUNT           tests whose names begin with PREFIX, such as the lessons
tests/renamed_tests.txt has a line OLD<tab>NEW for each renamed case. Several cases may become one.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent


def table(file):
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def cases_of_sources():
    """Returns the tags of each case in the test sources, and the largest number in its name and code."""
    found = {}
    for file in TESTS.rglob("*.cpp"):
        source = re.sub(r'"\s*\n\s*"', "", file.read_text())  # joins names that are split over lines
        for text in re.split(r"^TEST_CASE\(\s*", source, flags=re.M)[1:]:
            name, tags = re.match(r'"((?:[^"\\]|\\.)*)"(?:,\s*"([^"]*)")?', text).groups()
            numbers = re.findall(r"\d+", re.sub(r"(?<=\d)[',](?=\d)", "", text))
            found[name] = tags or "", max(map(int, numbers), default=0)
    return found


def assertions_run(build, names):
    """Runs the cases. Returns the number of passed assertions for each case."""
    found = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = pathlib.Path(folder, "names"), pathlib.Path(folder, "report.json")
        wanted.write_text("".join('"%s"\n' % re.sub(r'([\\",[])', r"\\\1", name) for name in names))
        for program in ("apps", "capture", "core", "data", "distributed", "io", "optim", "parallel", "report", "training"):
            subprocess.run([build / f"bin/test-{program}", "--input-file", wanted, "--reporter", f"json::out={report}",
                            "--allow-running-no-tests"], stdout=subprocess.DEVNULL)
            for case in json.loads(report.read_text())["test-run"]["test-cases"]:
                found[case["test-info"]["name"]] += case["totals"]["assertions"]["passed"]
    return found


def quick_tests(build, prefix):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-R", f"^{prefix}", "-LE", "slow"],
                            check=True, capture_output=True, text=True).stdout
    return sum(test["name"].startswith(prefix) for test in json.loads(listed)["tests"])  # without fixtures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--run", action="store_true")
    arguments = parser.parse_args()
    renamed = dict(table(TESTS / "renamed_tests.txt"))
    cases, earlier, to_run = cases_of_sources(), table(TESTS / "comparisons_of_f48842a.txt"), collections.Counter()
    problems = []

    def expect(name, what, least, got):
        if got < least:
            problems.append(f"{name}: expected at least {least} {what}, got {got}")

    for kind, name, least, *assertions in earlier:
        if kind == "reference":
            expect(name, "lines", int(least), len(table(TESTS / "reference" / name)))
        elif kind == "ctests":
            expect(name, "tests that are not slow", int(least), quick_tests(arguments.build, name))
        elif (new := renamed.get(name, name)) not in cases:
            problems.append(f"{name}: no case has this name, or its new name in tests/renamed_tests.txt")
        else:
            tags, largest = cases[new]
            expect(new, "compared items in the source", int(least), largest)
            if kind == "case":
                to_run[new] += int(assertions[0])
                if re.search(r"\[(slow|\.)\]", tags):
                    problems.append(f"{new}: expected a case that is not slow")
    if arguments.run:
        run = assertions_run(arguments.build, to_run)
        for name, least in to_run.items():
            expect(name, "assertions", least, run[name])
    print("\n".join(problems) or f"{len(earlier)} comparisons have their successors")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
