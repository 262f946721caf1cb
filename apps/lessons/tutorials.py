"""The page of each tutorial: its cells from top to bottom, in Python and in C++."""
import collections
import itertools

import cells
import chunks
import exercises
import sections
import snippets
from commands import block, folded, of_lesson, of_simulation, shell

UP = "../../"  # from here to the project
Section = collections.namedtuple("Section", "ids places title lesson chunk")

HOW = """The tutorial's cells, exercises and claims in its order: each first in Python, in our own words, then as C++
that does the same and prints the same. A quote says where the tutorial is wrong or wants more than a machine has. Configure
once; each command below then builds and runs one lesson. It uses the GPUs that it finds, and works without."""


def in_order(page, site):
    """Returns the sections in the tutorial's order. Consecutive ids of one chunk are one section."""
    rows = [row for row in snippets.read(site.folder) if row[0].startswith(page.name)]

    def place(row):
        lesson = site.lesson_of.get(row[0])
        found = [i for i, chunk in enumerate(chunks.cpp(lesson) if lesson else []) if row[0] in chunk.ids]
        return (lesson.name, found[0]) if found else (row[0], -1)

    made = []
    for (_, number), group in itertools.groupby(rows, place):
        group = list(group)
        lesson = site.lesson_of.get(group[0][0])
        if number >= 0:
            made.append(Section([row[0] for row in group], list(dict.fromkeys(row[1] for row in group)),
                                group[0][2], lesson, chunks.cpp(lesson)[number]))
    return made


def head(section):
    lesson = section.lesson
    return [f"## {section.title[0].upper()}{section.title[1:]}",
            f"{', '.join(f'`{id}`' for id in section.ids)} · {', '.join(section.places)} · "
            f"[{lesson.name[:2]} {lesson.title}](pages/{lesson.name}.md)"]


def outputs_of(lesson, site):
    """Returns the command for the lesson and its outputs, folded."""
    parts = [shell(of_lesson(lesson, site.torch)),
             folded("What it prints without a GPU", block("text", site.without_gpu[lesson.name]))]
    if site.simulated.get(lesson.name):
        parts.append(folded("What it prints on two GPUs, here simulated", shell(of_simulation(lesson, site.torch)),
                            block("text", site.simulated[lesson.name])))
    return parts


def output_above(lesson, site):
    """Returns the command for a lesson whose outputs the page shows above."""
    return [shell(of_lesson(lesson, site.torch)),
            f"It is the program of a cell above: [what it prints](pages/{lesson.name}.md#its-output-without-a-gpu)."]


def walk(found, site):
    """Returns the parts of the sections. The command and the outputs follow a lesson's last section in a row."""
    parts, shown = [], set()
    for place, each in enumerate(found):
        parts += [*head(each), *sections.section(each.chunk, each.lesson, site, UP)]
        if found[place + 1:place + 2] == [] or found[place + 1].lesson is not each.lesson:
            parts += outputs_of(each.lesson, site) if each.lesson not in shown else output_above(each.lesson, site)
            shown.add(each.lesson)
    return parts


def differences(page, site):
    listed = [(id, difference) for id, cell in cells.read(site.folder).items() if id.startswith(page.name)
              for difference in cell.differences]
    if not listed:
        return []
    lines = [f"- `{id}`, {difference.sentence()}" for id, difference in listed]
    return ["## Differences", "[A list](cells.txt) has each cell's statements in their order, and a test looks for "
            "them in\nthe code above. These differ:", "\n".join(lines)]


def text(page, site):
    others = [f"[{each.title}]({each.file})" for each in snippets.TUTORIALS if each != page]
    found = in_order(page, site)
    tasks = [each for each in found if each.places[0].startswith("exercise")]
    told = [each for each in found if each not in tasks]
    parts = [f"# {page.title}", f"{page.about}\n\n{HOW}", shell("cmake --preset default"),
             " · ".join(["[all lessons](README.md)", f"[From Python to C++]({UP}docs/python_to_cpp.md)", *others]),
             *walk(told, site)]
    if tasks:
        parts += ["## Exercises", *[part for each in tasks for part in exercises.parts(each, site, UP)]]
    return "\n\n".join([*parts, *differences(page, site)]) + "\n"
