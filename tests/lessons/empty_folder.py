#!/usr/bin/env python3
"""Copies the files of apps/lessons/from_an_empty_folder.md into an empty folder, builds them there, and compares the output.

  empty_folder.py --build build/default
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "apps/lessons/from_an_empty_folder.md"
FILE = r"^File `([\w.]+)`:\n\n```\w+\n(.*?)^```$"
OUTPUT = r"^```text\n(.*?)^```$"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder of sconce")
    build = parser.parse_args().build.resolve()
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        for match in re.finditer(rf"{FILE}|{OUTPUT}", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            name, text, shown = match.groups()
            if name:
                (pathlib.Path(folder) / name).write_text(text)
                continue
            command = f"cmake -S . -B build -G Ninja -Dsconce_DIR={build} && cmake --build build"
            subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            printed = subprocess.run(["build/first"], cwd=folder, env=environment, check=True, text=True,
                                     stdout=subprocess.PIPE).stdout
            if printed != shown:
                print(f"the page shows\n{shown}and the program prints\n{printed}")
                return 1
            runs += 1
    print(f"{runs} programs of the page were built in an empty folder and print what it shows")
    return 0 if runs == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
