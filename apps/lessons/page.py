#!/usr/bin/env python3
"""Fills in the tutorial pages, folder/README.md. Chunks, commands, and outputs are placed between
<!-- ... --> and <!-- end -->.

  page.py            fills in the chunks and keeps the existing outputs
  page.py --write    also runs all programs, without a GPU and on two simulated ones; NAME... selects programs
  page.py --check    compares the pages with the sources and reports what is missing
"""
import argparse
import functools
import hashlib
import json
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import machine  # noqa: E402
from lessons import HERE, TUTORIALS, differences, lessons  # noqa: E402

BIN = HERE.parents[1] / "build/default/bin/lessons"
COUNTS = HERE.parents[1] / "tests/lessons/counts.json"
REGION = re.compile(r"<!-- (cell|run|starter)(?: (\S+))?(?: (\S+))? -->\n(.*?)<!-- end -->", re.DOTALL)
FOLD = r"<summary>{}[^\n]*</summary>\n(?:(?!</details>).)*?```text\n(.*?)```"
WITHOUT, SIMULATED = "Output without a GPU", "Output on two simulated GPUs"
REAL = "needs a real GPU"
# Values that depend on the kernels of a real GPU, in lines that must match Python's exactly.
OF_KERNELS = re.compile(r"^(.*\b(?:allclose|[Cc]lose|[Bb]ackend|cuDNN|cuBLAS|NCCL|[Vv]ersion)\b[^:]*:) .+$")
WIDEST, MOST_LINES = 90, 60
# Statements that the pages must or must not contain, because a tutorial or an earlier page got them wrong.
CORRECTIONS = [
    ("gpu_acceleration_notebook", r'for a tensor, but not for a module: `net->to\("cuda"\)`', True),
    ("gpu_acceleration_notebook", r"Set the flag before the first call", True),
    ("gpu_acceleration_notebook", r"misses\s+by\s+not\s+waiting\s+for\s+the\s+GPU", True),
    ("gpu_acceleration_notebook", r"chooses\s+between\s+cuSOLVER", True),
    ("*", r"CuDNN's|above what such a GPU can do|assume it is predefined", False),
]


def block(language, text):
    text = text.strip("\n")
    return f"```{language}\n{text}\n```" if text else ""


def folded(summary, *parts):
    return "\n\n".join([f"<details>\n<summary>{summary}</summary>", *parts, "</details>"])


def command(lesson, simulated=False):
    targets = f"sconce-simgpu {lesson.target}" if simulated else lesson.target
    program = f"build/default/bin/lessons/{lesson.name}"
    if lesson.processes > 1:
        program = f"torchrun --standalone --nproc-per-node={lesson.processes} --no-python {program}"
    before = "build/default/bin/sconce-simgpu --gpus 2 -- " if simulated else ""
    path = "PATH=$(echo $PWD/build/setup/torch-2.15*/bin):$PATH " if lesson.processes > 1 else ""
    return f"cmake --build --preset default --target {targets} &&\n  {path}{before}{program}"


def statements(lesson, name):
    """Returns a hash of a chunk's code in both languages, ignoring comments and blank space."""
    code = re.sub(r"//.*", "", lesson.cpp_chunks[name]) + re.sub(r"#.*", "", lesson.python_chunks.get(name, ""))
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:16]


def listed(names):
    """Returns the names as an English list."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


@functools.cache
def records():
    """Returns the files that record.py wrote on machines with a GPU, latest first."""
    found = [json.loads(file.read_text()) for file in (HERE / "recorded").glob("*.json")]
    return sorted((each for each in found if each["gpus"]), key=lambda each: each["date"], reverse=True)


def recorded_outputs(lesson):
    """Yields each record, and the output of the lesson's chunks whose statements have not changed since."""
    for record in records():
        entry = record["lessons"].get(lesson.name, {})
        yield record, {name: entry[name]["output"] for name in lesson.cpp_chunks
                       if name in entry and entry[name]["statements"] == statements(lesson, name)}


def waiting(lesson):
    """Returns the names of the chunks that print something but are missing from all records."""
    shown = {name for _, found in recorded_outputs(lesson) for name in found}
    return [name for name in lesson.cpp_chunks
            if name not in shown and name != "start" and "print" in lesson.python_chunks.get(name, "")]


def recorded(lesson):
    """Returns a fold for each record that contains output of the lesson, and the names of the chunks that wait for one."""
    folds = []
    for record, found in recorded_outputs(lesson):
        about = f"Recorded on {record['date']} with LibTorch `{record['torch']}`."
        lines = "".join(found.values())
        if lines:
            folds.append(folded(f"Output on {machine.gpu_names(record['gpus'])}", about, block("text", lines)))
    names = ["*Beyond the tutorial*" if name == "beyond" else name for name in waiting(lesson)]
    return folds + [f"No GPU output has been recorded yet for {listed(names)}."] * bool(names and records())


def counted(lesson):
    """Returns a fold that lists the operations of the program, taken from the table that the tests compare it with."""
    rows = json.loads(COUNTS.read_text()).get(lesson.name)
    if not rows:
        return []
    def cell(entry):
        sides = zip(entry["C++"], entry["Python"]) if isinstance(entry, dict) else zip(entry, entry)
        return " | ".join(str(own) if own == other else f"{own} (Python: {other})" for own, other in sides)
    table = ["| | without a GPU | with one | with two |", "| --- | --- | --- | --- |"]
    table += [f"| {row} | {cell(entry)} |" for row, entry in rows.items()]
    reasons = sorted({entry["why"] for entry in rows.values() if isinstance(entry, dict)})
    return [folded("What the program does, counted (GPUs are simulated)", "\n".join(table), *reasons)]


class Page:
    """The page of a tutorial, with the text by its author and the generated text between its marks."""

    def __init__(self, tutorial, everyone):
        self.file = HERE / tutorial.folder / "README.md"
        self.text, self.rows = self.file.read_text(), differences(tutorial)
        self.lessons = {lesson.source.stem: lesson for lesson in everyone if lesson.source.parent == self.file.parent}
        self.outputs = {name: [self.output(name, summary) for summary in (WITHOUT, SIMULATED)] for name in self.lessons}

    def output(self, name, summary):
        run = next((match[4] for match in REGION.finditer(self.text) if match.groups()[:2] == ("run", name)), "")
        found = re.search(FOLD.format(summary), run, re.DOTALL)
        return found[1] if found else ""

    def cell(self, name, chunk):
        lesson = self.lessons[name]
        rows = [f"> In {row.language}, `{row.original}` "
                f"{'is omitted' if row.ours == 'nothing' else f'becomes `{row.ours}`'}. {row.reason[0].upper()}{row.reason[1:]}"
                for row in self.rows if chunk in row.ids]
        return [block("python", lesson.python_chunks.get(chunk, "")), block("cpp", lesson.cpp_chunks[chunk]), "\n>\n".join(rows)]

    def run(self, name, _):
        lesson, (without, simulated) = self.lessons[name], self.outputs[name]
        return [block("sh", command(lesson)), folded(WITHOUT, block("text", without)),
                folded(SIMULATED, block("sh", command(lesson, simulated=True)), block("text", simulated)), *recorded(lesson), *counted(lesson)]

    def starter(self, name, _):
        target = f"{self.file.parent.name}-{name}_start"
        return [block("cpp", (self.file.parent / f"{name}_start.cpp").read_text()),
                block("sh", f"cmake --build --preset default --target {target} &&\n  "
                            f"build/default/bin/lessons/{self.file.parent.name}/{name}_start")]

    def filled(self):
        def fill(match):
            parts = [part for part in getattr(self, match[1])(match[2], match[3]) if part]
            return "\n\n".join([match[0].partition("\n")[0], *parts, "<!-- end -->"])
        return REGION.sub(fill, self.text)

    def wrong(self):
        """Checks that the page contains each chunk once and in order, so that its C++ blocks make up the programs."""
        found = [f"{self.file.parent.name}: {line}" for line in difference(self.text, self.filled())]
        for name, lesson in self.lessons.items():
            shown = [match[3] for match in REGION.finditer(self.text) if match.groups()[:2] == ("cell", name)]
            if shown != list(lesson.cpp_chunks):
                found.append(f"{lesson.name}: expected the chunks {list(lesson.cpp_chunks)} on the page, got {shown}")
            found += [f"{lesson.name}: no output on the page"] * (not self.outputs[name][0])
            long = [line for line in lesson.cpp.splitlines() if len(line) > WIDEST]
            found += [f"{lesson.name}: expected at most {WIDEST} columns, got {len(line)}: {line}" for line in long]
            lines = sum(bool(re.match(r"\s*(?!//)\S", line)) for line in lesson.cpp.splitlines())
            found += [f"{lesson.name}: expected at most {MOST_LINES} lines of code, got {lines}"] * (lines > MOST_LINES)
        for folder, pattern, wanted in CORRECTIONS:
            if folder in ("*", self.file.parent.name) and bool(re.search(pattern, self.text)) != wanted:
                found.append(f"{self.file.parent.name}: {'lacks' if wanted else 'contains'} {pattern}")
        return found


def difference(now, made):
    if now == made:
        return []
    lines = zip(now.splitlines(), made.splitlines())
    place, (old, new) = next(((i, pair) for i, pair in enumerate(lines, 1) if pair[0] != pair[1]), (0, ("", "the end")))
    return [f"line {place} differs from the sources: expected {new!r}, got {old!r}: run page.py"]


def without_figures(line):
    if line.startswith("~"):
        words = re.split(r"\s*[-+]?\b(?:\d|inf\b|nan\b)", line, maxsplit=1)[0].rstrip(" :=(")
        return f"{words}: {REAL}" if words != "~" else f"~ {REAL}"
    return OF_KERNELS.sub(rf"\1 {REAL}", line)


def outputs(lesson):
    """Runs a program without a GPU and on two simulated GPUs. Returns its outputs."""
    environment = machine.environment(machine.python_folder(BIN))
    without = subprocess.run(lesson.command(BIN), env=environment | {"CUDA_VISIBLE_DEVICES": ""}, check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    simulated = [str(BIN.parent / "sconce-simgpu"), "--gpus", "2", "--hide-real-gpus", "--races", "throw", "--",
                 *lesson.command(BIN)]
    printed = subprocess.run(simulated, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout
    return [without, "".join(f"{without_figures(line)}\n" for line in printed.splitlines())]


def shown(lesson):
    """Returns the output that the lesson's page shows for a machine without a GPU. The tests use it."""
    tutorial = next(each for each in TUTORIALS if each.folder == lesson.source.parent.name)
    return Page(tutorial, [lesson]).output(lesson.source.stem, WITHOUT)


def made_with():
    """Returns the LibTorch and the CPU that produced the outputs."""
    made = re.search(r"LibTorch `(.+)`, one thread, and a CPU with `(.+)`\.", (HERE / "README.md").read_text())
    return made.groups() if made else (None, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="lessons to run with --write, such as d2l_gpus/0_gpus (default: all)")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    everyone = lessons()
    pages = [Page(tutorial, everyone) for tutorial in TUTORIALS]
    for page in pages:
        for name, lesson in page.lessons.items():
            if arguments.write and lesson.name in (arguments.names or [lesson.name]):
                page.outputs[name] = outputs(lesson)
        if not arguments.check:
            page.file.write_text(page.filled())
    if arguments.write and not arguments.names:
        index = (HERE / "README.md").read_text()
        made = f"LibTorch `{machine.torch_version(BIN)}`, one thread, and a CPU with `{machine.cpu()}`."
        (HERE / "README.md").write_text(re.sub(r"LibTorch `.+`, one thread, and a CPU with `.+`\.", made, index))
    wrong = [line for page in pages for line in page.wrong()] if arguments.check else []
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(everyone)} lessons on {len(pages)} pages, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
