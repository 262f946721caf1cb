#!/usr/bin/env python3
"""Applies each patch in this folder to a fresh clone of the last commit, builds its targets, and runs its tests.

The patches contain the changes of a contributor who follows CONTRIBUTING.md: a metric, an optimizer, and a launcher.
The lines before a patch's diff are "Build: targets" and "Test: a program and its arguments". The patches omit the line
in CHANGELOG.md.

  run.py [PATCH...]   all patches, or the named ones, such as metric
  run.py --tree F     in the clone F, which has no changes and is left without any, with its build folder
  run.py --check      only checks whether the patches apply to the sources
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(command, tree):
    print("==", *command, flush=True)
    subprocess.run(command, cwd=tree, check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))


def words_of(patch, title):
    return shlex.split(re.search(rf"^{title}: (.*)$", patch.read_text(), re.M)[1])


APPLY = ["git", "apply", "-C1"]


def check_clean(tree):
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=tree, check=True, capture_output=True, text=True)
    if changes.stdout:
        sys.exit(f"{tree}: expected a clone without changes, got\n{changes.stdout}")


def try_patch(patch, tree, setup):
    check_clean(tree)
    run([*APPLY, str(patch)], tree)
    try:
        run(["cmake", "--preset", "default", f"-DSCONCE_SETUP_DIR={setup}"], tree)
        run(["cmake", "--build", "--preset", "default", "--target", *words_of(patch, "Build"), "test-conventions"], tree)
        program, *arguments = words_of(patch, "Test")
        run([f"build/default/bin/{program}", *arguments], tree)
        run(["build/default/bin/test-conventions"], tree)
    finally:
        run(["git", "checkout", "--quiet", "."], tree)
        run(["git", "clean", "--quiet", "-fd"], tree)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PATCH")
    parser.add_argument("--tree", type=pathlib.Path)
    parser.add_argument("--setup", type=pathlib.Path, default=ROOT / "build/setup", help="as SCONCE_SETUP_DIR")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    patches = [HERE / f"{name}.patch" for name in arguments.names] or sorted(HERE.glob("*.patch"))
    if arguments.check:
        return any([subprocess.run([*APPLY, "--check", str(patch)], cwd=ROOT).returncode for patch in patches])
    with tempfile.TemporaryDirectory() as folder:
        tree = arguments.tree or pathlib.Path(folder) / "sconce"
        if not arguments.tree:
            run(["git", "clone", "--quiet", str(ROOT), str(tree)], folder)
        for patch in patches:
            try_patch(patch, tree, arguments.setup.resolve())
    print(f"{len(patches)} patches apply, build and pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
