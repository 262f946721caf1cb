#!/usr/bin/env python3
"""Writes the release notes, docs/release_0.3.md, from the first section of CHANGELOG.md.

    python3 docs/release_notes.py [--check]

With --check, the script writes nothing and fails if the page is out of date.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/release_0.3.md"
INTRODUCTION = """\
# Release 0.3

{state} [Limits](limits.md#platforms) says what has run on which hardware.
"""


def from_docs(link):
    """Converts a link for a page in the project's root folder to a link for a page in docs."""
    return link.removeprefix("docs/") if link.startswith("docs/") else f"../{link}"


def notes(changelog):
    """Returns the page generated from the changelog's first section."""
    title, text = re.search(r"^## (.*?)\n\n(.*?)(?=^## |\Z)", changelog, re.M | re.S).groups()
    date = re.search(r"\((.*)\)", title)
    introduction = INTRODUCTION.format(state=f"Released on {date[1]}." if date else "In preparation.")
    text = re.sub(r"\]\((?!https?:)([^)]+)\)", lambda link: f"]({from_docs(link[1])})", text)
    return introduction + "\n" + re.sub(r"^### ", "## ", text, flags=re.M).strip() + "\n"


def main():
    made = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
    elif made != PAGE.read_text(encoding="utf-8"):
        sys.exit("docs/release_0.3.md: differs from the changelog. To fix this: python3 docs/release_notes.py")


if __name__ == "__main__":
    main()
