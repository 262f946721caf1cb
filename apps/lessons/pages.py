"""The text of the lessons' pages, from the sources, the recorded outputs and snippets.txt."""
import json
import re

import machine
import sources

WITHOUT_GPU = "## Its output without a GPU"
TUTORIALS = ["T0", "T1", "T2", "T3", "T4"]


def snippets(folder):
    """Returns (id, place, what it shows) of each cell, by tutorial and in its order."""
    return [line.split(" | ") for line in (folder / "snippets.txt").read_text().splitlines()]


def output(folder, name):
    """Returns the output without a GPU that the lesson's page shows, or "" if there is none."""
    file = folder / f"pages/{name}.md"
    shown = re.search(rf"^{WITHOUT_GPU}\n\n```text\n(.*?)^```$", file.read_text() if file.exists() else "",
                      re.DOTALL | re.MULTILINE)
    return shown[1] if shown else ""


def made_with(folder):
    """Returns the LibTorch and the CPU of the outputs that the pages show, or (None, None)."""
    made = re.search(r"LibTorch `(.+)` with one thread on a CPU with `(.+)`\.",
                     (folder / "README.md").read_text())
    return made.groups() if made else (None, None)


def records(folder):
    """Returns the records that record.py wrote on machines with a GPU, the latest first."""
    found = [json.loads(file.read_text()) for file in (folder / "recorded").glob("*.json")]
    return sorted((record for record in found if record["gpus"]), key=lambda record: record["date"], reverse=True)


def is_current(record, lesson):
    """Whether the record contains the lesson, run from its current sources."""
    entry = record["lessons"].get(lesson.name)
    return bool(entry) and entry["sources"] == lesson.digest()


def recorded(lesson, folder):
    """Returns (record, its entry) of each record that contains the lesson in its current state."""
    return [(record, record["lessons"][lesson.name]) for record in records(folder) if is_current(record, lesson)]


def block(language, text):
    return f"```{language}\n{text}```"


def on_gpu(record, entry):
    verdict = "the same" if entry["equal"] else "something else"
    return [f"## Its output on {machine.gpu_names(record['gpus'])}",
            f"Recorded on {record['date']} with LibTorch `{record['torch']}`; Python printed {verdict}.",
            block("text", entry["output"])]


def lesson_page(lesson, everyone, folder, shown):
    notes = "\n".join(f"{i}. {note}" for i, note in enumerate(lesson.notes(), 1))
    place = [each.name for each in everyone].index(lesson.name)
    around = [("before", everyone[place - 1])] if place else []
    around += [("next", each) for each in everyone[place + 1:place + 2]]
    links = [f"[{word}: {each.name[:2]} {each.title}]({each.name}.md)" for word, each in around]
    parts = [f"# {lesson.name[:2]} {lesson.title}",
             f"{lesson.sentence[0].upper() + lesson.sentence[1:]}",
             f"It retells {', '.join(f'`{id}`' for id in lesson.ids)}.",
             " · ".join(["[all lessons](../README.md)", *links]),
             f"## C++: [{lesson.name}.cpp](../{lesson.name}.cpp)", block("cpp", lesson.listing())]
    parts += ["Where it differs from the original, and why:", notes] if notes else []
    parts += [f"## Python: [{lesson.name}.py](../{lesson.name}.py)", block("python", lesson.python),
              WITHOUT_GPU, block("text", shown)]
    parts += [part for each in recorded(lesson, folder) for part in on_gpu(*each)]
    return "\n\n".join(parts) + "\n"


def on_this_gpu(record, everyone):
    """Returns the index's sentence about a record. Lessons that have changed since are not counted."""
    current = [record["lessons"][lesson.name] for lesson in everyone if is_current(record, lesson)]
    changed = len(everyone) - len(current)
    return (f"On {machine.gpu_names(record['gpus'])}, with LibTorch `{record['torch']}` on {record['date']}, "
            f"{sum(entry['equal'] for entry in current)} of {len(current)} lessons printed what Python printed"
            f"{f'; {changed} have changed since' if changed else ''}.\n")


def status(made, everyone, folder):
    gpu = "".join(on_this_gpu(record, everyone) for record in records(folder))
    gpu = gpu or ("No lesson has run on a GPU so far: each page shows what was printed without one, and what the\n"
                  "sources say of GPUs was not seen on one.\n")
    return f"""{gpu}
The outputs without a GPU are those of LibTorch `{made[0]}` with one thread on a CPU with `{made[1]}`.
"""


def table(tutorial, everyone, folder):
    lesson_of = {id: lesson for lesson in everyone for id in lesson.ids}
    rows = "".join(f"| {place} | `{id}` | {what} | {link(lesson_of.get(id))} |\n"
                   for id, place, what in snippets(folder) if id.startswith(tutorial))
    return f"| place | id | what it shows | lesson |\n| --- | --- | --- | --- |\n{rows}"


def link(lesson):
    return f"[{lesson.name[:2]} {lesson.title}](pages/{lesson.name}.md)" if lesson else ""


def index(made, everyone, folder):
    """Returns README.md with its generated parts updated."""
    text = (folder / "README.md").read_text()
    parts = {"status": status(made, everyone, folder)}
    parts |= {tutorial: table(tutorial, everyone, folder) for tutorial in TUTORIALS}
    for name, part in parts.items():
        text = re.sub(rf"(?<=<!-- {name}, by page.py -->\n).*?(?=<!-- end -->\n)",
                      lambda _, part=part: f"\n{part}\n", text, count=1, flags=re.DOTALL)
    return text


def everything(made, everyone, folder, outputs):
    """Returns the text of each page by its file."""
    texts = {folder / f"pages/{lesson.name}.md": lesson_page(lesson, everyone, folder, outputs[lesson.name])
             for lesson in everyone}
    return {folder / "README.md": index(made, everyone, folder), **texts}
