#!/usr/bin/env python3
"""Writes the lessons' pages: README.md, a page for each tutorial, and pages/NN_name.md for each lesson.

  page.py --run BIN_DIR   runs the lessons in BIN_DIR without a GPU (as two processes if a lesson says so), some
                          of them on two simulated GPUs as well if BIN_DIR/../sconce-simgpu exists, and writes
                          the pages
  page.py --write         rewrites them with the outputs that they show
  page.py --check         fails if a page does not match the sources, an id of snippets.txt has no lesson or no
                          comment there, a cell's statements differ from those of cells.txt, a label of
                          labels.txt is not printed, too little is compared exactly, or C++ is too long or too
                          wide; prints the counts
"""
import argparse
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import checks  # noqa: E402
import machine  # noqa: E402
import outputs  # noqa: E402
import pages  # noqa: E402
import simulated  # noqa: E402
import sources  # noqa: E402


def write(site):
    if not site.torch or not site.cpu:
        sys.exit("page.py: the LibTorch and the CPU of these outputs are unknown")
    (site.folder / "pages").mkdir(exist_ok=True)
    for file, text in pages.everything(site).items():
        file.write_text(text)


def run(lesson, bin_folder):
    environment = machine.environment(machine.python_folder(bin_folder), CUDA_VISIBLE_DEVICES="")
    return subprocess.run(lesson.command(bin_folder), env=environment, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def as_shown(folder):
    """Returns the pages' content with the outputs that they show."""
    everyone = sources.lessons(folder)
    return pages.Site(outputs.made_with(folder), everyone, folder,
                      {lesson.name: outputs.output(folder, lesson.name) for lesson in everyone},
                      {name: outputs.simulated(folder, name) for name in simulated.LESSONS})


def as_run(folder, bin_folder):
    """Returns the pages' content with the outputs of the programs."""
    site = as_shown(folder)
    site.torch, site.cpu = machine.torch_version(bin_folder), machine.cpu()
    site.without_gpu = {lesson.name: run(lesson, bin_folder) for lesson in site.everyone}
    if simulated.program(bin_folder):
        site.simulated = {lesson.name: simulated.run(lesson, bin_folder) for lesson in site.everyone
                          if lesson.name in simulated.LESSONS}
    return site


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--run", type=pathlib.Path, metavar="BIN_DIR")
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.run:
        write(as_run(sources.HERE, arguments.run.resolve()))
    if arguments.write:
        write(as_shown(sources.HERE))
    if arguments.check:
        site = as_shown(sources.HERE)
        wrong = checks.everything(site)
        print(*wrong, sep="\n", file=sys.stderr)
        print(*checks.counts(site), sep="\n")
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
