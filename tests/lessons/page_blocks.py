#!/usr/bin/env python3
"""Copies the C++ blocks of each tutorial's page, in order, into one file per program, and builds and runs these files.

Nothing is added to the blocks. A program must build with the lesson's commands and print the output that the page shows.
In lines that begin with ~, numbers are not compared.

  page_blocks.py --build build/default [NAME...]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "apps/lessons"), str(HERE.parent / "apps")]
import compare_lessons  # noqa: E402
import machine  # noqa: E402
import page  # noqa: E402
import wrong_on_purpose  # noqa: E402
from lessons import TUTORIALS, lessons  # noqa: E402


def blocks(text):
    """Returns the C++ code of each program on a page, by name."""
    found = {}
    for region in page.REGION.finditer(text):
        if region[1] == "cell":
            code = region[4].partition("```cpp\n")[2].partition("```")[0]
            found[region[2]] = found.get(region[2], "") + code
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="such as d2l_gpus/0_gpus (default: all)")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder of the lessons")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    environment = machine.environment(machine.python_folder(page.BIN), CUDA_VISIBLE_DEVICES="")
    everyone = lessons()
    wrong, count = [], 0
    for tutorial in TUTORIALS:
        shown = page.Page(tutorial, everyone)
        for name, code in blocks(shown.text).items():
            lesson = shown.lessons[name]
            if arguments.names and lesson.name not in arguments.names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                source, program = (pathlib.Path(folder) / each for each in (f"{name}.cpp", lesson.name))
                source.write_text(code)
                program.parent.mkdir()
                wrong_on_purpose.build(lesson, source, program, arguments.build)
                printed = subprocess.run(lesson.command(pathlib.Path(folder)), env=environment, check=True, text=True,
                                         stdout=subprocess.PIPE).stdout
            equal = compare_lessons.compare(lesson.name, compare_lessons.normal(shown.outputs[name][0]),
                                            compare_lessons.normal(printed), ("page", "its blocks"))
            wrong += [lesson.name] * (not equal)
            count += 1
            print(f"{lesson.name}: {'ok' if equal else 'WRONG'}", flush=True)
    print(f"{count} programs built from the blocks of their pages, {len(wrong)} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
