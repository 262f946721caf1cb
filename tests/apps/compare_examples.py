#!/usr/bin/env python3
"""Runs examples and their Python twins on the CPU, and compares their output byte for byte.

Fails if the outputs differ, if an exit code is nonzero, or if an example has more lines than allowed.
"""
import argparse
import pathlib
import sys
import types

sys.dont_write_bytecode = True
import compare_lessons  # noqa: E402

MOST_LINES = {"text_classifier": 60, "cart_pole": 81, "gpt": 206, "mnist": 45, "mnist_plain": 130}  # 30 for the others
TWINS = {"mnist_plain": "mnist"}  # the twins whose names differ from their programs' names
ARGUMENTS = {"gpt": ["--text", str(compare_lessons.ROOT / "docs/training.md"), *"""
    --epochs 5 --batch 8 --context 32 --width 32 --layers 2 --sample 60""".split()]}


class Example:
    """A program and its twin, with the members of a lesson that the comparison uses."""

    processes = 1

    def __init__(self, source):
        self.name = source.stem
        self.arguments = ARGUMENTS.get(self.name, [])
        self.lines = len(source.read_text().splitlines())

    def twin(self):
        return types.SimpleNamespace(name=TWINS.get(self.name, self.name), processes=self.processes,
                                     arguments=self.arguments)

    def command(self, folder):
        return [str(folder / self.name), *self.arguments]


def is_short(example):
    most = MOST_LINES.get(example.name, 30)
    if example.lines > most:
        print(f"{example.name}.cpp: expected at most {most} lines, got {example.lines}")
    return example.lines <= most


def prints_the_same(example, arguments):
    twin = compare_lessons.run_twin(example.twin(), arguments, CUDA_VISIBLE_DEVICES="")
    cpp = compare_lessons.run_lesson(example, arguments, CUDA_VISIBLE_DEVICES="")
    return compare_lessons.compare(example.name, twin.splitlines(), cpp.splitlines(), ("Python", "C++"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="names to compare (default: all)")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--python", type=pathlib.Path, required=True, help="Python with the same LibTorch")
    parser.add_argument("--examples", type=pathlib.Path, dest="lessons", help="folder of the twins",
                        default=compare_lessons.ROOT / "apps/examples")
    parser.add_argument("--server", type=pathlib.Path, help="prefix of python_server.py's socket")
    parser.set_defaults(how="twins", simgpu=None)
    arguments = parser.parse_intermixed_args()
    everyone = [Example(source) for source in sorted(arguments.lessons.glob("*.cpp"))]
    chosen = [example for example in everyone if example.name in (arguments.names or [example.name])]
    if not chosen:
        sys.exit(f"no example of these names: {' '.join(arguments.names)}")
    right = [is_short(example) & prints_the_same(example, arguments) for example in chosen]
    print(f"{sum(right)} of {len(right)} examples are correct")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
