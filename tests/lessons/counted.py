#!/usr/bin/env python3
"""Runs a program or a Python script, unchanged, in a process that counts its operators.

  counted.py LIBRARY COMMAND ARGUMENT...

A program is started with the library preloaded. A script runs in this process after torch and then the library are loaded.
The library writes the counts to the file SCONCE_COUNTS: see count_operations.cpp.
"""
import atexit
import ctypes
import os
import sys


def run_program(library, command):
    preloaded = [os.environ.get("LD_PRELOAD", ""), library]  # sconce-simgpu preloads as well
    os.environ["LD_PRELOAD"] = " ".join(filter(None, preloaded))
    os.execvp(command[0], command)


def end():
    """Ends the process like a C program, while Python is still intact.

    Python's own shutdown stops a thread of autograd that is still releasing its results, by an exception that LibTorch
    does not let through, and the process aborts.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(0)


def run_script(library, command):
    import runpy

    import torch  # noqa: F401

    counter = ctypes.CDLL(library)
    sys.argv = command
    sys.path[0] = os.path.dirname(os.path.realpath(command[0]))
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        counter.write_counts()
    end()


if __name__ == "__main__":
    run = run_script if sys.argv[2].endswith(".py") else run_program
    run(sys.argv[1], sys.argv[2:])
