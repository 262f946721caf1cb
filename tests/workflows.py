#!/usr/bin/env python3
"""Runs the shell steps in .github/workflows in fresh clones of the last commit, by hand. Needs PyYAML.

    workflows.py --list                  the jobs, with the values of their matrix
    workflows.py --job fast              runs a job of ci.yml, once for each combination in its matrix
    workflows.py --job "test g++-12"     runs one combination; --setup links a folder of downloads as build/setup

Steps that use an action or `sudo` are listed and skipped. The exit code is 1 if a step fails.
"""
import argparse
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]


def combinations(job):
    """Yields the values of the job's matrix without the entries of `include`, which only add packages."""
    matrix = {name: values for name, values in job.get("strategy", {}).get("matrix", {}).items() if name != "include"}
    for values in itertools.product(*matrix.values()):
        yield dict(zip(matrix, values))


def jobs():
    """Yields the name of each job with its values, its steps, and the values."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items():
            name = name if file.stem == "ci" else f"{file.stem}/{name}"
            for values in combinations(job):
                yield " ".join([name, *values.values()]), job["steps"], values


def run(steps, values, folder):
    """Runs the shell steps in the folder. Returns whether all succeeded."""
    for step in steps:
        name, command = step.get("name") or step.get("uses") or step["run"].splitlines()[0], step.get("run")
        if not command or re.search(r"\bsudo\b", command) or "if" in step:
            print(f"-- left out: {name}", flush=True)
            continue
        command = re.sub(r"\$\{\{ *matrix\.(\w+) *\}\}", lambda found: values[found[1]], command)
        start = time.monotonic()
        code = subprocess.run(["bash", "-eo", "pipefail", "-c", command], cwd=folder).returncode
        print(f"== {name}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
        if code:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true")
    what.add_argument("--job")
    parser.add_argument("--setup", type=pathlib.Path)
    arguments = parser.parse_args()
    found = [job for job in jobs() if arguments.list or arguments.job in (job[0], job[0].partition(" ")[0])]
    if arguments.list:
        print("\n".join(name for name, _, _ in found))
        return
    if not found:
        parser.error(f"--job: there is no {arguments.job} (--list lists the jobs)")
    good = []
    for name, steps, values in found:
        with tempfile.TemporaryDirectory() as folder:
            clone = pathlib.Path(folder, "sconce")
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
            if arguments.setup:
                (clone / "build").mkdir()
                (clone / "build/setup").symlink_to(arguments.setup.resolve())
            print(f"== job {name}", flush=True)
            good.append(run(steps, values, clone))
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
