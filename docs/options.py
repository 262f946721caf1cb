#!/usr/bin/env python3
"""Writes docs/options.md: a table for each struct of options in the public headers, from their comments. With --check it
fails if the page has others.

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

Each struct of options with its members, in the order in which C++ wants them in braces: `{.batch_size = 32, .shuffle = true}`. The
options of layers and of some optimizers are set by calls, as LibTorch's are: `LayerNormOptions(32).eps(1e-6)`. Members without a
default must be given. The tables are made from the headers by docs/options.py.
"""
STRUCT = re.compile(r"((?:^///[^\n]*\n)+)(?:^template <[^\n]*>\n)?^struct (\w+Options)(?: : [^{]*)? \{\n(.*?)^\};", re.M | re.S)
SETTER = re.compile(r"TORCH_ARG\((?P<type>.*), (?P<name>\w+)\)(?: = (?P<default>.+))?")
MEMBER = re.compile(r"(?P<type>[\w:][\w:<>,*& ()]*?)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?", re.S)


def first_sentence(comment):
    """Returns the first sentence of a comment, without its end."""
    text = " ".join(comment.split())
    sentence = re.split(r"(?<![.\d][a-z])\.(?: |$)|; ", text, maxsplit=1)[0]
    return sentence[:1].upper() + sentence[1:]


def members(body):
    """Yields name, type, default and comment of each member of a struct."""
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
        without_comment = re.split("(?<!:)//", declaration, maxsplit=1)[0]  # "env://" is none
        declared = f"{declared} {without_comment}".strip()
        if declared.endswith("}"):  # of a constructor
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
        sys.exit("docs/options.md: expected the options of the headers; run docs/options.py")


if __name__ == "__main__":
    main()
