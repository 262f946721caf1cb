#!/usr/bin/env python3
"""Runs every command block of README.md, docs/installation.md, and docs/own_model.md in order, as a new user would.

The commands run in a fresh clone of the last commit, without any LibTorch except the one that they install. The programs
of own_model.md are built and run in the project that installation.md creates, whose first program is the template's. The
output of a command is compared with the block that shows it, except for the numbers.

  docs_commands.py                       runs all blocks and prints how long each one took
  docs_commands.py --check               compares the pages with BLOCKS below, and runs nothing
  docs_commands.py --work F --only TEXT  runs the blocks that contain TEXT in the folder F, after an earlier run there

Needs a network for the steps that download, 10 GB of disk space, and about an hour. The exit code is 1 if a command
fails, or if a page contains a block that BLOCKS does not list.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The replacement for each word in angle brackets.
PLACEHOLDERS = {"<folder>": "{work}/prefix", "<path to sconce>": "{work}/sconce"}

# Each block of a page: words that no other block of the page contains, and how the block is handled.
#   run FOLDER     its commands run in that folder of the work folder
#   run-by-python  the same in the work folder, with the torch that the clone installed in the active Python
#   shown          the output of the commands before it contains its lines
#   file NAME      it becomes that file of the folder `mine`
#   program        it becomes main.cpp of `mine`, which is built and run
#   not-run WHY    nothing
BLOCKS = {
    "README.md": [
        ("trainer.fit", "not-run it is the template's program, which the test package-of-build runs"),
        ("epoch 10/10", "not-run the test package-of-build compares it with what the template prints"),
        ("--preset demo-cpu", "not-run tests/build/cpu_root.py runs it, and docs/installation.md has the last line"),
        ("FetchContent_Declare", "not-run the test package-FetchContent does it"),
    ],
    "docs/installation.md": [
        ("libtorch-dev", "not-run tests/build/cpu_root.py runs it"),
        ("--build --preset demo-cpu", "not-run it needs an index of CPU wheels"),
        ("--preset demo", "run sconce"),
        ("epoch 15/15", "shown"),
        ("--preset test", "run sconce"),
        ("apps/template first", "run ."),
        ("--preset release", "run sconce"),
        ("find_package(sconce 0.3 REQUIRED)", "file CMakeLists.txt"),
        ("-DCMAKE_PREFIX_PATH=<folder>", "run mine"),
        ("add_subdirectory(sconce)", "not-run the test package-add_subdirectory does it"),
        ("FetchContent_Declare", "not-run the test package-FetchContent does it"),
        ("pip install", "run-by-python"),
        ("conan create", "not-run it needs Conan, and is tried by hand"),
        ("COMPONENTS core", "not-run the test package-find_package does it"),
        ("record.py", "not-run it needs a GPU"),
    ],
    "docs/own_model.md": [
        ("training_step", "program"),
        ("class GradientNorm", "program"),
        ("class MeanBias", "program"),
    ],
}

Block = collections.namedtuple("Block", "name text action")


def blocks_of(page, text):
    """Returns the blocks of a page with their actions. Raises ValueError if BLOCKS does not match the page."""
    named = list(BLOCKS[page])
    found = []
    for match in re.finditer(r"^```[a-z]*\n(.*?)^```$", text, re.M | re.S):
        block = match.group(1)
        name = f"{page}: {block.splitlines()[0]}"
        if not named or named[0][0] not in block:
            expected = f"a block with '{named[0][0]}'" if named else "no further block"
            raise ValueError(f"{name}: expected {expected}; name this one in BLOCKS of tests/docs_commands.py")
        found.append(Block(name, block, named.pop(0)[1]))
    if named:
        raise ValueError(f"{page}: expected a block with '{named[0][0]}'")
    return found


def all_blocks():
    return [block for page in BLOCKS for block in blocks_of(page, (ROOT / page).read_text(encoding="utf-8"))]


def filled(text, work):
    """Returns the text with the placeholders filled in."""
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value.format(work=work))
    left = re.search(r"<[a-z][^<>\n]*>", text)
    if left:
        raise ValueError(f"expected {left.group()} in PLACEHOLDERS")
    return text


def shows(block, output):
    """Returns whether the output contains the lines of the block, with any numbers."""
    pattern = re.sub(r"\d+(\\\.\d+)?", r"\\d+(\\.\\d+)?", re.escape(block))
    return re.search(pattern, output) is not None


class Reader:
    """Follows the pages' instructions in a work folder."""

    def __init__(self, work):
        self.work = work
        self.output = ""
        (work / "mine").mkdir(exist_ok=True)
        shutil.copy(work / "sconce/apps/template/main.cpp", work / "mine")
        # No variable may point to a LibTorch on this machine or to another compiler's flags.
        keep = {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "SSL_CERT_FILE"}
        self.environment = {name: value for name, value in os.environ.items()
                            if name in keep or name.lower().endswith("_proxy") or name.startswith("PIP_")}

    def run(self, commands, folder, path=""):
        environment = dict(self.environment, PATH=f"{path}{self.environment['PATH']}")
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], cwd=self.work / folder,
                                   env=environment, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = []
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
        self.output = "".join(lines)
        if process.wait() != 0:
            raise ValueError(f"the exit code is {process.returncode}")

    def do(self, block):
        word, _, rest = block.action.partition(" ")
        if word == "run":
            self.run(filled(block.text, self.work), rest)
        elif word == "run-by-python":
            pythons = sorted((self.work / "sconce/build/setup").glob("torch-*/bin"))
            self.run(filled(block.text, self.work), "", f"{pythons[0]}:")
        elif word == "file":
            (self.work / "mine" / rest).write_text(block.text, encoding="utf-8")
        elif word == "program":
            (self.work / "mine/main.cpp").write_text(block.text, encoding="utf-8")
            self.run("cmake --build build && build/mine", "mine")
        elif word == "shown" and not shows(block.text, self.output):
            raise ValueError("the commands before it printed no such lines")


def follow(blocks, work):
    reader = Reader(work)
    for block in blocks:
        start = time.monotonic()
        print(f"== {block.name} [{block.action}]", flush=True)
        try:
            reader.do(block)
        except ValueError as error:
            return f"{block.name}: {error}\n{block.text}"
        print(f"== took {time.monotonic() - start:.0f} s", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, help="a folder to work in; otherwise one that is removed")
    parser.add_argument("--only", help="runs the blocks that hold this text")
    args = parser.parse_args()
    try:
        blocks = all_blocks()
    except ValueError as error:
        sys.exit(str(error))
    if args.check:
        return
    work = args.work.resolve() if args.work else pathlib.Path(tempfile.mkdtemp(prefix="sconce-docs-"))
    if not args.only:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, work / "sconce"], check=True)
    failure = follow([block for block in blocks if not args.only or args.only in block.text], work)
    if not args.work:
        shutil.rmtree(work)
    if failure:
        sys.exit(failure)


if __name__ == "__main__":
    main()
