#!/usr/bin/env python3
"""Fills the tables of the pages on speed from the files of times, between `<!-- docs/speed.py: TABLE FILE -->` and
`<!-- end -->`.

    python3 docs/speed.py [--check]

With --check it writes nothing, and fails if a page differs.
"""
import functools
import re
import sys

sys.dont_write_bytecode = True
import blocks  # noqa: E402

sys.path.insert(0, str(blocks.ROOT / "apps/bench"))
import tables  # noqa: E402
import times  # noqa: E402

TABLES = {
    "slower": lambda results: tables.table(tables.SLOWER_HEADER, tables.slower(results)),
    "rows": lambda results: tables.table(
        tables.HEADER, [line for workload, result in results for line in tables.rows(workload, result)]),
    "forms": lambda results: tables.table(tables.FORMS_HEADER, tables.forms(results)),
    "growth": lambda results: tables.table(tables.GROWTH_HEADER, tables.growth(results)),
}
PAGES = ("docs/speed.md", "docs/speed_elsewhere.md", "docs/on_a_gpu.md")


def made(name, file):
    found = times.read(blocks.ROOT / "docs" / file)
    return TABLES[name](times.paired(found["results"])).rstrip("\n")


def parts(page):
    """The parts that a page asks for."""
    asked = re.findall(r"<!-- docs/speed\.py: (\w+) (\S+) -->", blocks.read(page))
    return {f"{name} {file}": functools.partial(made, name, file) for name, file in asked}


if __name__ == "__main__":
    blocks.write("speed.py", {page: parts(page) for page in PAGES})
