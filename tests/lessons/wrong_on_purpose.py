#!/usr/bin/env python3
"""Introduces mistakes in copies of the lessons that measure, and fails if the comparison misses one.

In each lesson and each twin, a wait is left out, two dimensions are exchanged, and a count is wrong. The copy runs on
one simulated GPU. A mistake is found if a count differs from counts.json, if the output differs from the lesson's, or if the
simulated GPU reports a race. A copy that fails for another reason proves nothing.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from mistakes import MISTAKES

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.append(str(HERE.parent / "apps"))
import compare_lessons  # noqa: E402
import counting  # noqa: E402
import lessons as sources  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="lessons (default: all that the table of mistakes has)")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder of the lessons")
    parser.add_argument("--counter", type=pathlib.Path, required=True, help="the library count-operations")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.bin, arguments.lessons = arguments.build / "bin/lessons", sources.HERE
    arguments.python = pathlib.Path(sys.executable)
    arguments.simgpu, arguments.gpus = arguments.build / "bin/sconce-simgpu", 1
    arguments.how, arguments.server = "gpu", None
    arguments.counts, arguments.table = "check", counting.TABLE
    return arguments


def with_mistake(text, replacements):
    for old, new in replacements.items():
        if old not in text:
            raise KeyError(f"mistakes.py is of another lesson; this one has no {old}")
        text = text.replace(old, new, 1)
    return text


def build(lesson, source, program, folder):
    """Builds a program from this source with the lesson's commands."""
    listed = subprocess.run(["ninja", "-t", "commands", f"bin/lessons/{lesson.name}"], cwd=folder,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    linking = listed[-1]
    made = next(word for word in shlex.split(linking) if word.endswith(".o"))
    compiling = next(line for line in listed if f"-o {made} " in line).rpartition(" -c ")[0]
    for command in [f"{compiling} -c {source}", linking.replace(f"bin/lessons/{lesson.name}", str(program))]:
        subprocess.run(command.replace(made, f"{program}.o"), shell=True, cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)


def seen(lesson, language, replacements, right, arguments, folder):
    """Returns how the comparison detects the mistake, or None if it does not."""
    shutil.copytree(sources.HERE, folder / "lessons", ignore=shutil.ignore_patterns("recorded"))
    ending = ".cpp" if language == "C++" else ".py"
    source = folder / f"lessons/{lesson.name}{ending}"
    source.write_text(with_mistake(source.read_text(), replacements))
    wrong = argparse.Namespace(**vars(arguments) | {"lessons": folder / "lessons", "bin": folder})
    counts = folder / "counts"
    if language == "C++":
        (folder / lesson.name).parent.mkdir()
        build(lesson, source, folder / lesson.name, arguments.build)
    run = compare_lessons.run_lesson if language == "C++" else compare_lessons.run_twin
    try:
        output = run(lesson, wrong, counts)
    except compare_lessons.Failed as failure:
        race = re.search("a race: .*", str(failure))
        if not race:
            raise
        return race[0]
    different = counting.differences(counting.read_table(arguments.table), lesson.name, language, arguments.gpus,
                                     counting.read(counts, lesson.processes))
    if different:
        return different[0]
    return None if compare_lessons.normal(output) == right else "its output differs"


def right_output(lesson, arguments):
    """Returns the output of the lesson without a mistake. Its counts must match the table."""
    cpp, _, equal = compare_lessons.run_both(lesson, arguments)
    if not equal:
        sys.exit(f"{lesson.name}: its counts are others even without a mistake")
    return compare_lessons.normal(cpp)


def main():
    arguments = options()
    lessons = {lesson.name: lesson for lesson in compare_lessons.choose(arguments, arguments.names)}
    chosen = [mistake for mistake in MISTAKES if mistake[0] in lessons]
    right = {name: right_output(lessons[name], arguments) for name in {name for name, *_ in chosen}}
    unseen = 0
    for name, language, what, replacements in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                how = seen(lessons[name], language, replacements, right[name], arguments, pathlib.Path(folder))
            except (KeyError, compare_lessons.Failed, counting.Missing, subprocess.CalledProcessError) as reason:
                how = None
                print(reason)
        unseen += how is None
        print(f"{name}: {language}: {what}: {how or 'NOT SEEN'}", flush=True)
    print(f"{len(chosen) - unseen} of {len(chosen)} mistakes were seen")
    return 1 if unseen or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
