#!/usr/bin/env python3
"""Fills in the tables on the pages about speed from timing files, between `<!-- docs/speed.py: NAME FILE... -->` and
`<!-- end -->`.

    python3 docs/speed.py [--check]

With --check, the script writes nothing and fails if a page is out of date.
"""
import functools
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import blocks  # noqa: E402

sys.path.insert(0, str(blocks.ROOT / "apps/bench"))
import tables  # noqa: E402
import times  # noqa: E402
from workloads import QUESTIONS  # noqa: E402

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
    return wrapped(
        f"Measured on {' and '.join(days)} with LibTorch {machine['torch']}, Python {machine['python']}, and "
        f"{threads(machine['threads'])} on {number(machine['cores'])} cores of an {machine['cpu']}, in {pairs} pairs. Before a "
        f"workload started, the load average was at most {max(result['load'] for result in results):.1f}. The file with "
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
        of_sides = times.ratios(result, "sconce") if result else {}
        eager = [of_sides[side] for side in ("default", "best") if side in of_sides]
        return tables.within(min(eager, key=lambda ratio: ratio["median"])) if eager else ""

    rows = [[titles[key], *(cell(column.get(key)) for column in columns)] for key in SUMMARY if key in titles]
    heads = [f"[{found['machine']['cpu'].split(' @')[0]}, {threads(found['machine']['threads'])}]({name})"
             for name, found in files]
    return ["workload", *heads], rows


def made(name, files):
    found = [(file, times.read(blocks.ROOT / "docs" / file)) for file in files]
    results = times.paired(found[0][1]["results"])
    question = name.removeprefix("losses_")
    if name == "measured":
        return measured(*found[0])
    if name == "summary":
        return tables.table(*summary(found)).rstrip("\n")
    if question in QUESTIONS and question != name:
        return losses(question, results)
    if question in QUESTIONS:
        return tables.table(*tables.compared(results, question)).rstrip("\n")
    return tables.table(*tables.TABLES[name](results)).rstrip("\n")


def parts(page):
    """Returns the parts requested by a page."""
    asked = re.findall(r"<!-- docs/speed\.py: (\w+)((?: \S+\.json)+) -->", blocks.read(page))
    return {name + files: functools.partial(made, name, files.split()) for name, files in asked}


if __name__ == "__main__":
    blocks.write("speed.py", {page: parts(page) for page in PAGES})
