"""Prints the folder in which CMake finds the sources of sconce."""
import argparse

import sconce

parser = argparse.ArgumentParser(prog="python -m sconce", description=__doc__)
group = parser.add_mutually_exclusive_group(required=True)
group.add_argument("--cmake-dir", action="store_true", help="print the folder to use as CMake's sconce_DIR")
group.add_argument("--version", action="version", version=sconce.__version__)
parser.parse_args()
print(sconce.cmake_dir())
