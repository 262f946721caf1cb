#!/usr/bin/env python3
"""Writes the page README.md from the lessons: both languages side by side, and the output.

  page.py --run BIN_DIR   runs the lessons in BIN_DIR (two processes where one says so) and writes
                          the page; torchrun must be in the PATH
  page.py --check         fails where the page is not what the sources say, or where an id of
                          snippets.txt has no lesson; prints how many have
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "README.md"
MATERIAL = HERE.parents[2] / "shared/snippets.md"  # the tutorials' cells by id, where it is at hand
TUTORIALS = {
    "T0": 'the guide "Using GPUs for Deep Learning", its PyTorch branches',
    "T1": 'the chapter "GPUs" of the d2l book, its PyTorch tabs',
    "T2": "a notebook of that chapter",
    "T3": 'the notebook "GPU acceleration in PyTorch"',
    "T4": 'the guide "GPU Acceleration in PyTorch"',
}


class Lesson:
    """What the head and the notes of NN_name.cpp say."""

    def __init__(self, source):
        self.name = source.stem
        self.cpp = source.read_text()
        self.python = source.with_suffix(".py").read_text()
        head = re.match(r"// ([^:]+): (.+)\n// Covers: (.+)\n(?:// Processes: (\d+)\n)?", self.cpp)
        if not head:
            sys.exit(f"page.py: {source.name}: expected the lines '// Title: sentence' and '// Covers: ids'")
        self.title, self.sentence, ids, processes = head.groups()
        self.ids, self.processes = ids.split(), int(processes or 1)
        # A note is the comment from "note:" to the end of its lines, or to the next note.
        notes = re.findall(r"// note: (.*\n(?:\s*// (?!note:|Covers:).*\n)*)", self.cpp)
        notes = [" ".join(re.sub(r"\s*// ", " ", note).split()) for note in notes]
        self.notes = [re.sub(r"^[a-z]+(?= )", lambda word: word[0].capitalize(), note) for note in notes]

    def command(self, folder):
        program = [str(folder / self.name)]
        if self.processes == 1:
            return program
        return ["torchrun", "--standalone", f"--nproc-per-node={self.processes}", "--no-python", *program]

    def anchor(self):
        return re.sub(r"[^\w\- ]", "", f"{self.name[:2]} {self.title}").lower().replace(" ", "-")


def lessons(folder=HERE):
    """Returns all lessons in reading order."""
    return [Lesson(source) for source in sorted(folder.glob("[0-9]*.cpp"))]


def outputs(page):
    """Returns the output that the page shows of each lesson."""
    return dict(re.findall(r'<a name="output-(\w+)"></a>\n```text\n(.*?)```', page, re.DOTALL))


def run(lesson, folder):
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="2")
    done = subprocess.run(lesson.command(folder), env=environment, check=True, text=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def table(all_lessons):
    rows = [f"| lesson | {' | '.join(TUTORIALS)} |", "| --- |" + " --- |" * len(TUTORIALS)]
    for lesson in all_lessons:
        cells = [", ".join(id[3:] for id in lesson.ids if id.startswith(t)) for t in TUTORIALS]
        rows.append(f"| [{lesson.name[:2]} {lesson.title}](#{lesson.anchor()}) | {' | '.join(cells)} |")
    return "\n".join(rows)


def section(lesson, output):
    notes = "\n".join(f"- {note}" for note in lesson.notes)
    differs = f"What differs from the original, and why:\n\n{notes}\n\n" if notes else ""
    return f"""## {lesson.name[:2]} {lesson.title}

{lesson.sentence[0].upper() + lesson.sentence[1:]} Covers {", ".join(f"`{id}`" for id in lesson.ids)}.

<table><tr><th>C++</th><th>Python</th></tr><tr><td>

```cpp
{lesson.cpp}```

</td><td>

```python
{lesson.python}```

</td></tr></table>

{differs}It prints:

<a name="output-{lesson.name}"></a>
```text
{output}```
"""


def page(all_lessons, shown):
    legend = "\n".join(f"- {key} is {what}." for key, what in TUTORIALS.items())
    count = sum(len(lesson.ids) for lesson in all_lessons)
    twin = all_lessons[2].name
    sections = "\n".join(section(lesson, shown.get(lesson.name, "")) for lesson in all_lessons)
    return f"""# The lessons

Every PyTorch snippet of five tutorials on GPUs, in C++, printing what Python prints: {count} cells and claims in
{len(all_lessons)} lessons, by the name that each cell has in [snippets.txt](snippets.txt).

{table(all_lessons)}

{legend}

A lesson is a program and its twin in Python. The tests run both with the same LibTorch and compare what they print, byte
for byte; of a line that begins with `~` they compare all but the figures, which are times. Each runs with and without a
GPU. The output below is that of a machine with two cores and without a GPU.

```sh
cmake --build --preset default
build/default/bin/lessons/{twin}
python apps/lessons/{twin}.py
```

The twins share one file, the Python of sconce's own helpers:

```python
{(HERE / "helpers.py").read_text()}```

{sections}"""


def check(all_lessons):
    """Returns what is wrong, a line each."""
    listed = [line.split() for line in (HERE / "snippets.txt").read_text().splitlines()]
    covered = [[id, lesson.name] for lesson in all_lessons for id in lesson.ids]
    wrong = [f"snippets.txt and the lessons differ: {' '.join(row)}"
             for row in listed + covered if (row in listed) != (row in covered) or covered.count(row) > 1]
    if MATERIAL.exists():
        rows = re.findall(r"^\| ((?:T\d\.\S+ ?)+)\|", MATERIAL.read_text(), re.MULTILINE)
        ids = {id for row in rows for id in row.split()}
        wrong += [f"snippets.txt and {MATERIAL.name} differ: {id}" for id in sorted(ids ^ {row[0] for row in listed})]
    for lesson in all_lessons:
        lines = lesson.cpp.count("\n")
        if not 25 <= lines <= 90:
            wrong.append(f"{lesson.name}.cpp: expected 25 to 90 lines, got {lines}")
    now = PAGE.read_text()
    shown = outputs(now)
    wrong += [f"README.md: no output of {lesson.name}" for lesson in all_lessons if not shown.get(lesson.name)]
    expected = page(all_lessons, shown)
    wrong += list(difflib.unified_diff(now.splitlines(), expected.splitlines(), "README.md", "the sources",
                                       lineterm="", n=0))[:20]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--run", type=pathlib.Path, metavar="BIN_DIR")
    choice.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    all_lessons = lessons()
    if arguments.run:
        shown = {lesson.name: run(lesson, arguments.run) for lesson in all_lessons}
        PAGE.write_text(page(all_lessons, shown))
        return 0
    wrong = check(all_lessons)
    print("\n".join(wrong), file=sys.stderr)
    count = sum(len(lesson.ids) for lesson in all_lessons)
    print(f"{count} of {len((HERE / 'snippets.txt').read_text().splitlines())} ids are covered by "
          f"{len(all_lessons)} lessons")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
