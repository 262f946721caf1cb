#!/usr/bin/env python3
"""Writes the lessons' pages: the index in README.md, and pages/NN_name.md for each lesson.

  page.py --run BIN_DIR   runs the lessons in BIN_DIR without a GPU (as two processes if a lesson says so)
                          and writes the pages
  page.py --write         rewrites them with the outputs that they show
  page.py --check         fails if a page does not match the sources, an id of snippets.txt has no
                          lesson or no comment there, a label of labels.txt is not printed, too
                          little is compared exactly, or C++ is too wide; prints the counts
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import labels  # noqa: E402
import machine  # noqa: E402
import pages  # noqa: E402
import sources  # noqa: E402

LEAST_EXACT = 0.9  # of all printed lines; the other lines begin with ~
WIDEST = 90  # columns of C++ that a forge shows at 900 pixels without scrolling


def write(made, everyone, folder, outputs):
    if not all(made):
        sys.exit("page.py: the LibTorch and the CPU of these outputs are unknown")
    (folder / "pages").mkdir(exist_ok=True)
    for file, text in pages.everything(made, everyone, folder, outputs).items():
        file.write_text(text)


def run(lesson, bin_folder):
    environment = machine.environment(machine.python_folder(bin_folder), CUDA_VISIBLE_DEVICES="")
    return subprocess.run(lesson.command(bin_folder), env=environment, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def wrong_ids(everyone, folder):
    listed = [id for id, _, _ in pages.snippets(folder)]
    covered = [id for lesson in everyone for id in lesson.ids]
    wrong = [f"{id}: {listed.count(id)} times in snippets.txt, {covered.count(id)} times in the lessons"
             for id in sorted({*listed, *covered}) if listed.count(id) != 1 or covered.count(id) != 1]
    material = folder.parents[2] / "shared/snippets.md"  # the list's source, which may not exist
    if material.exists():
        rows = re.findall(r"^\| ((?:T\d\.\S+ ?)+)\|", material.read_text(), re.MULTILINE)
        ids = {id for row in rows for id in row.split()}
        wrong += [f"snippets.txt and {material.name} differ: {id}" for id in sorted(ids ^ set(listed))]
    return wrong


def wrong_lengths(everyone):
    lengths = {lesson.name: lesson.cpp.count("\n") for lesson in everyone}
    return [f"{name}.cpp: expected 25 to 90 lines, got {lines}" for name, lines in lengths.items()
            if not 25 <= lines <= 90]


def wrong_widths(everyone):
    return [f"{lesson.name}.cpp: expected at most {WIDEST} columns, got {len(line)}: {line.strip()}"
            for lesson in everyone for line in lesson.listing().splitlines() if len(line) > WIDEST]


def wrong_pages(everyone, folder, outputs):
    made = pages.made_with(folder)
    expected = pages.everything(made, everyone, folder, outputs)
    wrong = [] if all(made) else ["README.md: it does not say what the outputs were made with"]
    wrong += [f"pages/{lesson.name}.md: no output" for lesson in everyone if not outputs[lesson.name]]
    wrong += [f"{file.name}: a page of no lesson" for file in sorted((folder / "pages").glob("*"))
              if file not in expected]
    for file, text in expected.items():
        now = file.read_text() if file.exists() else ""
        wrong += list(difflib.unified_diff(now.splitlines(), text.splitlines(), file.name, "the sources",
                                           lineterm="", n=0))[:20]
    return wrong


def wrong_exactness(everyone, outputs):
    """Checks that each lesson compares a computed line exactly, and that nearly all printed lines are exact."""
    wrong = [f"{lesson.name}: prints no exact line that is not a text of its source" for lesson in everyone
             if not lesson.computed(outputs[lesson.name])]
    printed = [line for text in outputs.values() for line in text.splitlines()]
    exact = [line for text in outputs.values() for line in sources.exact(text)]
    if len(exact) < LEAST_EXACT * len(printed):
        wrong.append(f"expected at least {LEAST_EXACT:.0%} exact lines, got {len(exact)} of {len(printed)}")
    return wrong


def wrong_marks(everyone):
    unmarked = {f"{lesson.name}.{ending}": lesson.unmarked_ids(ending) for lesson in everyone
                for ending in ["cpp", "py"]}
    return [f"{file}: no comment at what retells {', '.join(ids)}" for file, ids in unmarked.items() if ids]


def absent_labels(everyone, folder, outputs):
    """Returns the labels that the pages lack, in the outputs without a GPU and in the recorded ones."""
    listed = labels.read(folder)
    shown = [(lesson, outputs[lesson.name], 0) for lesson in everyone]
    shown += [(lesson, entry["output"], len(record["gpus"])) for lesson in everyone
              for record, entry in pages.recorded(lesson, folder)]
    return [f"{lesson.name}, with GPUs {gpus}: {label.id} prints, missing or out of order: {label.text}"
            for lesson, text, gpus in shown
            for label in labels.missing(labels.applying(listed, lesson.ids, gpus), text)]


def counts(everyone, folder, outputs):
    """Returns statistics of the pages, a line each."""
    ids = [id for lesson in everyone for id in lesson.ids]
    printed = sum(len(text.splitlines()) for text in outputs.values())
    exact = sum(len(sources.exact(text)) for text in outputs.values())
    computed = sum(len(lesson.computed(outputs[lesson.name])) for lesson in everyone)
    listed = labels.read(folder)
    wanted = {lesson.name: labels.applying(listed, lesson.ids, gpus=0) for lesson in everyone}
    absent = sum(len(labels.missing(wanted[name], text)) for name, text in outputs.items())
    total = sum(map(len, wanted.values()))
    return [f"{len(ids)} of {len(pages.snippets(folder))} ids are covered by {len(everyone)} lessons",
            f"{exact} of {printed} lines are compared exactly, {computed} of them no text of their source",
            f"{total - absent} of {total} labels that a machine without a GPU prints, of {len(listed)} listed",
            f"{len(pages.records(folder))} recorded outputs of GPUs"]


def check(folder):
    """Returns the errors, a line each, and the statistics."""
    everyone = sources.lessons(folder)
    outputs = {lesson.name: pages.output(folder, lesson.name) for lesson in everyone}
    wrong = wrong_ids(everyone, folder) + wrong_lengths(everyone) + wrong_pages(everyone, folder, outputs)
    wrong += wrong_widths(everyone) + wrong_marks(everyone) + wrong_exactness(everyone, outputs)
    wrong += labels.differences(labels.read(folder), labels.material(folder))
    wrong += absent_labels(everyone, folder, outputs)
    return wrong, counts(everyone, folder, outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--run", type=pathlib.Path, metavar="BIN_DIR")
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    folder = sources.HERE
    everyone = sources.lessons(folder)
    if arguments.run:
        bin_folder = arguments.run.resolve()
        made = (machine.torch_version(bin_folder), machine.cpu())
        write(made, everyone, folder, {lesson.name: run(lesson, bin_folder) for lesson in everyone})
    if arguments.write:
        outputs = {lesson.name: pages.output(folder, lesson.name) for lesson in everyone}
        write(pages.made_with(folder), everyone, folder, outputs)
    if arguments.check:
        wrong, counted = check(folder)
        print(*wrong, sep="\n", file=sys.stderr)
        print(*counted, sep="\n")
        return 1 if wrong else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
