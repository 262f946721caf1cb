#!/usr/bin/env python3
"""Fills in the tables on the pages about speed from timing files, between `<!-- docs/speed.py: NAME FILE... -->` and
`<!-- end -->`.

    python3 docs/speed.py [--check]

With --check, the script writes nothing and fails if a page is out of date.
"""
import functools
import math
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import blocks  # noqa: E402

sys.path.insert(0, str(blocks.ROOT / "apps/bench"))
import tables  # noqa: E402
import times  # noqa: E402
from workloads import EAGER_PYTHON, QUESTIONS  # noqa: E402

PAGES = ("docs/speed.md", "docs/speed_elsewhere.md", "docs/on_a_gpu.md")
NUMBERS = {1: "one", 2: "two", 4: "four"}
# The workloads in the summary of other machines. There are at most 15, and they cover each question.
SUMMARY = [("steps.sgd", 4), ("steps.sgd", 4096), ("steps.adam", 4), ("steps.amp", 64), ("steps.layers", 50),
           ("gpt.block", 8), ("conv.resnet", 8), ("conv.cnn", 16), ("epochs.mlp", 6144), ("epochs.lenet", 6144),
           ("ddp.step", 2), ("feeding.batches", 60_000), ("files.load", 16), ("steps.sgd:start", 4),
           ("optimizers.adamw_small", 1000)]


def number(count):
    return NUMBERS.get(count, str(count))


def threads(count):
    return f"{number(count)} thread{'s' * (count > 1)}"


def wrapped(text):
    return textwrap.fill(text, 122, break_long_words=False, break_on_hyphens=False)


def measured(name, found):
    """Returns text that describes when, where, and how often the times in a file were measured."""
    machine, results = found["machine"], found["results"]
    days = sorted({result["time"][:10] for result in results})
    pairs = max(len(result["values"]["sconce"]) for result in results)
    load = math.ceil(10 * max(result["load"] for result in results)) / 10
    return wrapped(
        f"Measured on {' and '.join(days)} with LibTorch {machine['torch']}, Python {machine['python']}, and "
        f"{threads(machine['threads'])} on {number(machine['cores'])} cores of an {tables.cpu_name(machine)}, in "
        f"{pairs} pairs. Before a workload started, the load average was at most {load}. The file with "
        f"[all times]({name}) contains the load before each row.")


def losses(question, results):
    """Lists the rows of a question in which sconce is slower by more than noise."""
    chosen = [(workload, result) for workload, result in results if workload.question == question]
    slower = [f"{title} against {side} ({ratio})" for title, side, _, ratio, _ in tables.slower(chosen)]
    compared = sum(len([side for side in times.ratios(result) if side != "limit"]) for _, result in chosen)
    if not slower:
        return f"sconce is not slower in any of these {compared} comparisons."
    lines = "\n".join(f"- {line}" for line in slower)
    return f"sconce is slower in {len(slower)} of these {compared} comparisons:\n\n{lines}"


def summary(files):
    """Returns the header and the rows of a table with one column for each file: the ratio of the fastest eager Python
    variant to sconce's eager loop.
    """
    columns = [{(result["name"], result["size"]): result for result in found["results"]} for _, found in files]
    titles = {key: result["title"] for column in columns for key, result in column.items()}

    def cell(result):
        eager = result and times.fastest(times.ratios(result, "sconce"), EAGER_PYTHON)
        return tables.within(eager) if eager else ""

    rows = [[titles[key], *(cell(column.get(key)) for column in columns)] for key in SUMMARY if key in titles]
    heads = [f"[{tables.cpu_name(found['machine'])}, {threads(found['machine']['threads'])}]({name})"
             for name, found in files]
    return ["workload", *heads], rows


@functools.cache
def read(file):
    return times.read(blocks.ROOT / "docs" / file)


def paired(file):
    return times.paired(read(file)["results"])


def table(header, lines):
    return tables.table(header, lines).rstrip("\n")


# The parts of pages, by name. Each is a function of the names of timing files.
PARTS = {
    "measured": lambda file: measured(file, read(file)),
    "summary": lambda *files: table(*summary([(file, read(file)) for file in files])),
    **{name: lambda file, make=make: table(*make(paired(file))) for name, make in tables.TABLES.items()},
    **{name: lambda file, name=name: table(*tables.compared(paired(file), name)) for name in QUESTIONS},
    **{f"losses_{name}": lambda file, name=name: losses(name, paired(file)) for name in QUESTIONS},
}


def parts(page):
    """Returns the parts requested by a page."""
    asked = re.findall(r"<!-- docs/speed\.py: (\w+)((?: \S+\.json)+) -->", blocks.read(page))
    return {name + files: functools.partial(PARTS[name], *files.split()) for name, files in asked}


if __name__ == "__main__":
    blocks.write("speed.py", {page: parts(page) for page in PAGES})
