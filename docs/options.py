#!/usr/bin/env python3
"""Writes docs/options.md: a table for each options struct in the public headers, based on their comments. With --check,
the script fails if the page is out of date.

    options.py [--check]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/site"))
sys.dont_write_bytecode = True
from reference import ROOMS, code, in_order  # noqa: E402

HEAD = """# Options

This page lists each options struct with its members. List them in this order in braces: `{.batch_size = 32, .shuffle = true}`. As in
LibTorch, you set the options of layers and some optimizers by calls: `LayerNormOptions(32).eps(1e-6)`. Members without a default are
required. docs/options.py generates the tables from the headers.
"""
STRUCT = re.compile(r"((?:^///[^\n]*\n)+)(?:^template <[^\n]*>\n)?^struct (\w+Options)(?: : [^{]*)? \{\n(.*?)^\};", re.M | re.S)
SETTER = re.compile(r"TORCH_ARG\((?P<type>.*), (?P<name>\w+)\)(?: = (?P<default>.+))?")
MEMBER = re.compile(r"(?P<type>[\w:][\w:<>,*& ()]*?)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?", re.S)


def first_sentence(comment):
    """Returns the first sentence of a comment, without the final period."""
    text = " ".join(comment.split())
    sentence = re.split(r"(?<![.\d][a-z])\.(?: |$)|; ", text, maxsplit=1)[0]
    return sentence[:1].upper() + sentence[1:]


def members(body):
    """Yields the name, type, default, and comment of each member of a struct."""
    above, declared, beside = [], "", []
    for line in [*body.splitlines(), ""]:
        declaration, _, comment = line.partition("///")
        if beside and not (comment.startswith("<") and not declaration.strip()):
            yield from member(declared, above, beside)
            above, declared, beside = [], "", []
        if comment and not comment.startswith("<"):
            above.append(comment)
            continue
        if comment:
            beside.append(comment[1:])
        without_comment = re.split("(?<!:)//", declaration, maxsplit=1)[0]  # "env://" does not start a comment
        declared = f"{declared} {without_comment}".strip()
        if declared.endswith("}"):  # a constructor
            above, declared, beside = [], "", []
        elif declared.endswith(";") and not beside:
            yield from member(declared, above, beside)
            above, declared = [], ""


def member(declared, above, beside):
    declared = declared.rstrip(";")
    found = SETTER.fullmatch(declared) or MEMBER.fullmatch(declared)
    if found and not declared.startswith(("using", "friend", "static", "operator", "auto")):
        yield found["name"], found["type"], found["default"] or "", first_sentence(" ".join(above + beside))


def table(comment, name, body):
    rows = [f"| `{of}` | {code(kind)} | {code(default)} | {text} |" for of, kind, default, text in members(body)]
    about = first_sentence(re.sub("^///", "", comment, flags=re.M))
    lines = [f"### {name}", "", about + ".", "", "| member | type | default | what |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *rows]) + "\n" if rows else ""


def page(include):
    headers = sorted(str(file.relative_to(include))[:-4] for file in include.rglob("*.hpp") if "detail" not in file.parts)
    parts = [HEAD]
    for title, _, places in ROOMS.values():
        tables = [table(*found.groups()) for header in in_order(headers, places)
                  for found in STRUCT.finditer((include / f"{header}.hpp").read_text())
                  if found[2] != "TableOptions"]  # a base class
        if any(tables):
            parts += [f"## {title}\n", *filter(None, tables)]
    return "\n".join(parts)


def main():
    file = ROOT / "docs/options.md"
    text = page(ROOT / "include/sconce")
    if sys.argv[1:] != ["--check"]:
        file.write_text(text)
    elif file.read_text() != text:
        sys.exit("docs/options.md: expected the options in the headers. To fix this: python3 docs/options.py")


if __name__ == "__main__":
    main()
