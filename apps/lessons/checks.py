"""What page.py --check finds wrong, a line each."""
import difflib
import re
import statistics

import cells
import labels
import outputs
import pages
import reference
import snippets
import sources
import texts

LEAST_EXACT = 0.9  # of all printed lines; the other lines begin with ~
WIDEST = 90  # columns of C++ that a forge shows at 900 pixels without scrolling, comments aside
MOST_CODE, MEDIAN_CODE = 60, 35  # lines of C++ that are neither blank nor only a comment
INSTRUMENT = re.compile(r"addGlobalCallback|RecordFunction|TorchDispatchMode|profiler|checksum")


def ids(everyone, folder):
    listed = [id for id, _, _ in snippets.read(folder)]
    covered = [id for lesson in everyone for id in lesson.ids]
    wrong = [f"{id}: {listed.count(id)} times in snippets.txt, {covered.count(id)} times in the lessons"
             for id in sorted({*listed, *covered}) if listed.count(id) != 1 or covered.count(id) != 1]
    material = folder.parents[2] / "shared/snippets.md"  # the list's source, which may not exist
    if material.exists():
        rows = re.findall(r"^\| ((?:T\d\.\S+ ?)+)\|", material.read_text(), re.MULTILINE)
        wrong += [f"snippets.txt and {material.name} differ: {id}"
                  for id in sorted({id for row in rows for id in row.split()} ^ set(listed))]
    return wrong


def lengths(everyone):
    counted = {lesson.name: lesson.code_lines() for lesson in everyone}
    wrong = [f"{name}.cpp: expected at most {MOST_CODE} lines of code, got {lines}"
             for name, lines in counted.items() if lines > MOST_CODE]
    median = statistics.median(counted.values())
    if median > MEDIAN_CODE:
        wrong.append(f"expected a median of at most {MEDIAN_CODE} lines of code, got {median}")
    return wrong


def widths(everyone):
    return [f"{lesson.name}.cpp: expected at most {WIDEST} columns, got {len(line)}: {line.strip()}"
            for lesson in everyone for line in lesson.cpp.splitlines()
            if len(line) > WIDEST and not line.strip().startswith("//")]


def instruments(folder):
    return [f"{file.name}: an instrument: {match[0]}" for ending in ["cpp", "py"]
            for file in sorted(folder.glob(f"*.{ending}")) if file.name != "checks.py"
            for match in [INSTRUMENT.search(file.read_text())] if match]


def marks(everyone):
    """Checks that one comment of ids marks each cell, in both sources."""
    wrong = []
    for lesson in everyone:
        for ending in ["cpp", "py"]:
            marked = lesson.marked_ids(ending)
            wrong += [f"{lesson.name}.{ending}: expected one comment of ids with {id}, got {marked.count(id)}"
                      for id in dict.fromkeys([*lesson.ids, *marked])
                      if marked.count(id) != (1 if id in lesson.ids else 0)]
    return wrong


def contents(site):
    """Compares the pages with what the sources make."""
    expected = pages.everything(site)
    wrong = [] if site.torch and site.cpu else ["README.md: it does not say what the outputs were made with"]
    wrong += [f"pages/{name}.md: no output" for name, text in site.without_gpu.items() if not text]
    wrong += [f"{file.name}: a page of no lesson" for file in sorted((site.folder / "pages").glob("*"))
              if file not in expected]
    for file, text in expected.items():
        now = file.read_text() if file.exists() else ""
        wrong += list(difflib.unified_diff(now.splitlines(), text.splitlines(), file.name, "the sources",
                                           lineterm="", n=0))[:20]
    return wrong


def exactness(site):
    """Checks that each lesson compares a computed line exactly, and that nearly all printed lines are exact."""
    wrong = [f"{lesson.name}: prints no exact line that is not a text of its source" for lesson in site.everyone
             if not lesson.computed(site.without_gpu[lesson.name])]
    printed = [line for text in site.without_gpu.values() for line in text.splitlines()]
    exact = [line for text in site.without_gpu.values() for line in sources.exact(text)]
    if len(exact) < LEAST_EXACT * len(printed):
        wrong.append(f"expected at least {LEAST_EXACT:.0%} exact lines, got {len(exact)} of {len(printed)}")
    return wrong


def absent_labels(site):
    """Returns the labels that the pages lack, in the outputs without a GPU and in the recorded ones."""
    listed = labels.read(site.folder)
    shown = [(lesson, site.without_gpu[lesson.name], 0) for lesson in site.everyone]
    shown += [(lesson, entry["output"], len(record["gpus"])) for lesson in site.everyone
              for record, entry in outputs.recorded(lesson, site.folder)]
    return [f"{lesson.name}, with GPUs {gpus}: {label.id} prints, missing or out of order: {label.text}"
            for lesson, text, gpus in shown
            for label in labels.missing(labels.applying(listed, lesson.ids, gpus), text)]


def counts(site):
    """Returns statistics of the lessons and their pages, a line each."""
    everyone, shown = site.everyone, site.without_gpu
    covered = sum(len(lesson.ids) for lesson in everyone)
    printed = sum(len(text.splitlines()) for text in shown.values())
    exact = sum(len(sources.exact(text)) for text in shown.values())
    computed = sum(len(lesson.computed(shown[lesson.name])) for lesson in everyone)
    listed = labels.read(site.folder)
    wanted = {lesson.name: labels.applying(listed, lesson.ids, gpus=0) for lesson in everyone}
    absent = sum(len(labels.missing(wanted[name], text)) for name, text in shown.items())
    total = sum(map(len, wanted.values()))
    code = [lesson.code_lines() for lesson in everyone]
    differing = [each for cell in {id(cell.differences): cell for cell in cells.read(site.folder).values()}.values()
                 for each in cell.differences]
    return [f"{covered} of {len(snippets.read(site.folder))} ids are covered by {len(everyone)} lessons",
            f"{exact} of {printed} lines are compared exactly, {computed} of them no text of their source",
            f"{total - absent} of {total} labels that a machine without a GPU prints, of {len(listed)} listed",
            f"lines of code: median {statistics.median(code)}, at most {max(code)}",
            f"{len(differing)} listed differences from the cells' statements",
            f"{sum(map(bool, site.simulated.values()))} outputs of two simulated GPUs, "
            f"{len(outputs.records(site.folder))} recorded outputs of GPUs"]


def everything(site):
    everyone, folder = site.everyone, site.folder
    return [*ids(everyone, folder), *lengths(everyone), *widths(everyone), *instruments(folder), *marks(everyone),
            *texts.wrong(everyone, folder), *reference.wrong(everyone), *cells.wrong(everyone, folder),
            *contents(site), *exactness(site), *absent_labels(site),
            *labels.differences(labels.read(folder), labels.material(folder))]
