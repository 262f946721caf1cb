#!/usr/bin/env python3
"""Counts the lines of C++ and Python that are neither blank nor comments, and the `///` lines of the public headers.

    python3 tests/lines.py [REVISION]

Counts the files committed at the revision, by default HEAD.
"""
import subprocess
import sys

ENDINGS = (".hpp", ".h", ".cpp", ".py")
ROOMS = {
    "include and src": lambda path: path.startswith(("include/", "src/")),
    "apps without lessons": lambda path: path.startswith("apps/") and not path.startswith("apps/lessons/"),
    "apps/lessons": lambda path: path.startswith("apps/lessons/"),
    "tests": lambda path: path.startswith("tests/"),
}


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def code_lines(path, text):
    mark = "#" if path.endswith(".py") else "//"
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith(mark))


def main():
    revision = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    paths = [path for path in git("ls-tree", "-r", "--name-only", revision).splitlines() if path.endswith(ENDINGS)]
    texts = {path: git("show", f"{revision}:{path}") for path in paths}
    for room, holds in ROOMS.items():
        own = {path: text for path, text in texts.items() if holds(path)}
        code = sum(code_lines(path, text) for path, text in own.items())
        print(f"{room}: {code} lines of code, {sum(text.count(chr(10)) for text in own.values())} lines in all")
    documented = sum(
        "///" in line for path, text in texts.items() if path.startswith("include/") for line in text.splitlines()
    )
    print(f"public headers: {documented} lines with ///")


if __name__ == "__main__":
    main()
