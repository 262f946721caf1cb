"""The parts of pages that are written by scripts, between `<!-- docs/SCRIPT.py: NAME -->` and `<!-- end -->`."""
import itertools
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def filled(script, name, text, parts):
    """Returns a page's text with its parts filled in. Raises ValueError if a part is missing. `parts` maps names to
    functions."""
    for part, made in parts.items():
        begin, end = f"<!-- docs/{script}: {part} -->\n", "\n<!-- end -->"
        before, found, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found or not found_end:
            raise ValueError(f"{name}: expected '{begin.strip()}' and '{end.strip()}' after it")
        text = before + begin + made() + end + after
    return text


def difference(script, name, made, text):
    lines = itertools.zip_longest(made.splitlines(), text.splitlines())
    expected, got = next(pair for pair in lines if pair[0] != pair[1])
    return f"{name}: expected '{expected}', got '{got}'. To fix this: python3 docs/{script}"


def write(script, pages):
    """Fills in the parts of pages. With --check, fails if a page is out of date. `pages` maps page names to their
    parts."""
    try:
        texts = {name: filled(script, name, read(name), parts) for name, parts in pages.items()}
    except ValueError as error:
        sys.exit(str(error))
    for name, made in texts.items():
        text = read(name)
        if "--check" not in sys.argv[1:]:
            (ROOT / name).write_text(made, encoding="utf-8")
        elif made != text:
            sys.exit(difference(script, name, made, text))
