"""The outputs that the pages show: without a GPU, on two simulated ones, and recorded on real ones."""
import json
import re

WITHOUT_GPU = "## Its output without a GPU"
SIMULATED = "## Its output on two simulated GPUs"


def under(heading, folder, name):
    """Returns the output under the heading of the lesson's page, or "" if there is none."""
    file = folder / f"pages/{name}.md"
    _, _, rest = (file.read_text() if file.exists() else "").partition(f"\n{heading}\n")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.search(r"^```text\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def output(folder, name):
    return under(WITHOUT_GPU, folder, name)


def simulated(folder, name):
    return under(SIMULATED, folder, name)


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
