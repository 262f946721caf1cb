"""The generated parts of README.md: with what the outputs were made, and a table of each tutorial's cells."""
import re

import machine
import outputs
import snippets


def on_this_gpu(record, everyone):
    """Returns the sentence about a record. Lessons that have changed since are not counted."""
    current = [record["lessons"][lesson.name] for lesson in everyone if outputs.is_current(record, lesson)]
    changed = len(everyone) - len(current)
    return (f"On {machine.gpu_names(record['gpus'])}, with LibTorch `{record['torch']}` on {record['date']}, "
            f"{sum(entry['equal'] for entry in current)} of {len(current)} lessons printed what Python printed"
            f"{f'; {changed} have changed since' if changed else ''}.\n")


def status(site):
    gpu = "".join(on_this_gpu(record, site.everyone) for record in outputs.records(site.folder))
    gpu = gpu or ("No lesson has run on a GPU so far: each page shows what was printed without one, and what the\n"
                  "sources say of GPUs was not seen on one.\n")
    return f"""{gpu}
The outputs without a GPU are those of LibTorch `{site.torch}` with one thread on a CPU with `{site.cpu}`.
"""


def link(lesson):
    return f"[{lesson.name[:2]} {lesson.title}](pages/{lesson.name}.md)" if lesson else ""


def table(page, site):
    rows = "".join(f"| {place} | `{id}` | {what} | {link(site.lesson_of.get(id))} |\n"
                   for id, place, what in snippets.read(site.folder) if id.startswith(page.name))
    return (f"[From top to bottom, in Python and in C++]({page.file})\n\n"
            f"| place | id | what it shows | lesson |\n| --- | --- | --- | --- |\n{rows}")


def index(site):
    """Returns README.md with its generated parts updated."""
    text = (site.folder / "README.md").read_text()
    parts = {"status": status(site), **{page.name: table(page, site) for page in snippets.TUTORIALS}}
    for name, part in parts.items():
        text = re.sub(rf"(?<=<!-- {name}, by page.py -->\n).*?(?=<!-- end -->\n)",
                      lambda _, part=part: f"\n{part}\n", text, count=1, flags=re.DOTALL)
    return text
