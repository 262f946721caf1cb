#!/usr/bin/env python3
"""Lists the claims of the pages and the evidence for each one.

    tests/claims.py              prints for each page how many claims it has, how they are shown, and how many are not
    tests/claims.py --list PAGE  prints the claims that nothing shows, as claims.txt writes them

A claim is a sentence or a row of a table with a number, a comparative, "every", "never", or "bit for bit". Numbers in
code and in names (float32, C++20, LibTorch 2.15.0) do not count. A claim is shown in one of these ways:

- written: a script writes it between `<!-- docs/readme.py: NAME -->` and `<!-- end -->`, or writes the whole page;
- listed: claims.txt lists a test, a file, or a date and a machine for it;
- linked: it links to a test or a file of results;
- dated: its section or the page's introduction contains a date and a machine.
"""
import argparse
import collections
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))
sys.dont_write_bytecode = True
import counts  # noqa: E402

SOURCES = ROOT / "tests/claims.txt"
PAGES = ["README.md", "docs/*.md", "apps/train/README.md"]
MOST_UNSHOWN = 20  # on all pages together
WRITTEN_PAGES = ["docs/options.md"]  # written by a script of the same name

SECTION = re.compile(r"^(?=## )", re.M)  # the beginning of a section
WRITTEN = re.compile(r"^<!-- (?:docs|apps|tests)/[\w/]+\.py: .*?^<!-- end -->$", re.M | re.S)
FENCED = re.compile(r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)[ \t]*$", re.M | re.S)
# Numbers in these are parts of names.
NAMES = re.compile(r"\b(?:LibTorch|PyTorch|torchvision|torch|Python|CUDA|Debian|Ubuntu|CMake|Conan|g\+\+|clang|C\+\+|"
                   r"ONNX Runtime|sconce|[Rr]elease|Inductor)(?:'s)? ?v?\d+(?:\.\d+)*"
                   r"(?:(?:,| and| to| or) \d+(?:\.\d+)+)*|\b[A-Za-z_]+[-\d.]*\d\w*|\b\d+-bit\b")
MARKUP = [(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1"), (r"\*\*|<br>", ""), (r"<!--.*?-->", "")]
ADJECTIVES = (r"bigger|better|cheaper|faster|fewer|greater|higher|larger|less|(?<!\bno )longer|lower|more|nearer|"
              r"newer|older|quicker|shorter|simpler|slower|smaller|stronger|tighter|wider|worse|fastest|slowest|"
              r"smallest|largest")
CLAIM = re.compile(rf"\d|\b(?:{ADJECTIVES}|every|never|bit for bit)\b", re.I)
DATED = re.compile(r"(?=.*\b20\d\d-\d\d(?:-\d\d)?\b).*\b(?:AMD|Intel|H100|H200|same machine)\b")
# A link to a test or to results, or the numbers of tests that a page lists, which docs_test.py checks.
SHOWING_LINK = re.compile(r"\b(?:yes|refused) \(\d|\btest \d"
                          r"|\]\((?:[\w./]*tests/[\w./-]+|[\w./-]+\.(?:json|xml|cpp|py|hpp))(?:#[\w-]+)?\)")

WAYS = ["written", "listed", "linked", "dated"]
Claim = collections.namedtuple("Claim", "text shown")  # shown: how, or None


def plain(text):
    """Returns a sentence on one line as a reader sees it."""
    for pattern, replacement in MARKUP:
        text = re.sub(pattern, replacement, text, flags=re.S)
    return re.sub(r"^(?:[-*>]|\d+\.) ", "", " ".join(text.split()).strip("| "))


def sentences(text):
    """Returns the sentences, list items, and rows of a page as they are written."""
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*>|]|\d+\.) )", text.replace("**", ""))
    found = []
    for paragraph in paragraphs:
        if paragraph.lstrip().startswith("#") or re.fullmatch(r"[|\s:-]*", paragraph):
            continue
        paragraph = re.sub(r"^\s*(?:[-*>]|\d+\.) ", "", paragraph)
        is_row = paragraph.lstrip().startswith("|")
        found += [paragraph] if is_row else re.split(r"(?<=[\w)`\"*][.!?])\s+(?=[A-Za-z`*\[\"])", paragraph)
    return found


def is_claim(text):
    return bool(CLAIM.search(NAMES.sub("", re.sub(r"`[^`]*`", "`", plain(text)))))


def without_code(text):
    return FENCED.sub("", text)


def parts_with_dates(text, page):
    """Yields the sentences of a text, and whether the page's introduction or their section contains a date and a machine."""
    introduction = SECTION.split(without_code(page), maxsplit=1)[0]
    dated_page = any(DATED.search(plain(part)) for part in sentences(introduction))
    for section in SECTION.split(without_code(text)):
        parts = sentences(section)
        dated = dated_page or any(DATED.search(plain(part)) for part in parts)
        yield from ((part, dated) for part in parts)


def claims(page, text, listed):
    """Returns the claims of a page with their evidence. `listed` contains the claims with a source in claims.txt."""
    written, rest = "".join(WRITTEN.findall(text)), WRITTEN.sub("", text)
    if page in WRITTEN_PAGES:
        written, rest = text, ""
    found = [Claim(plain(part), "written") for part in sentences(without_code(written)) if is_claim(part)]
    for part, dated in parts_with_dates(rest, text):
        name = plain(part)
        shown = ("listed" if name in listed else "linked" if SHOWING_LINK.search(part) else "dated" if dated else None)
        if is_claim(part):
            found.append(Claim(name, shown))
    return found


def sources(text):
    """Returns the entries of claims.txt by page, with the sources of each claim. Raises ValueError for an invalid
    line."""
    found, page, claim = {}, None, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            page = line[3:]
            found[page] = {}
        elif line.startswith("    ") and claim:
            found[page].setdefault(claim, []).append(line.strip())
        elif line and not line.startswith("#"):
            if page is None or line in found[page]:
                raise ValueError(f"claims.txt, line {number}: expected a new claim below a page, got '{line}'")
            claim = line
            found[page][claim] = []
    return found


def names_of_tests():
    """Returns the names of the C++ tests."""
    return {name for file in (ROOT / "tests").rglob("*.cpp") for name, _ in counts.cases(file.read_text(encoding="utf-8"))}


def wrong_source(source, tests):
    """Returns the problem with a source, or None."""
    if source.startswith("measured "):
        return None if re.match(r"measured 20\d\d-\d\d-\d\d, \S", source) else "expected 'measured DATE, MACHINE'"
    if source.startswith('"'):
        return None if source[1:-1] in tests else "expected the name of a test"
    file, _, words = source.partition(": ")
    if not (ROOT / file).is_file():
        return "expected a file"
    if words:
        return None if words in (ROOT / file).read_text(encoding="utf-8") else f"expected words of {file}"
    return None if re.fullmatch(r"tests/.*\.py", file) else "expected words of the file after ': '"


def all_claims(listed):
    """Returns the claims of each page."""
    pages = sorted({page.relative_to(ROOT).as_posix() for pattern in PAGES for page in ROOT.glob(pattern)})
    return {page: claims(page, (ROOT / page).read_text(encoding="utf-8"), listed.get(page, {})) for page in pages}


def problems(listed, found):
    """Yields the problems in claims.txt, and a problem if too many claims on the pages have no evidence."""
    tests = names_of_tests()
    yield from (f"claims.txt: expected a section '## {page}'" for page in found if page not in listed)
    for page, entries in listed.items():
        known = {claim.text for claim in found.get(page, [])}
        for claim, named in entries.items():
            if claim not in known:
                closest = difflib.get_close_matches(claim, known, n=1) or ["no similar one"]
                yield f"{page}: expected the claim '{claim}', got {closest[0]}"
            if not named:
                yield f"{page}: expected a source below '{claim}'"
            for source in named:
                if wrong := wrong_source(source, tests):
                    yield f"{page}: {wrong}, got '{source}'"
    unshown = [f"{page}: '{claim.text}'" for page in found for claim in found[page] if not claim.shown]
    if len(unshown) > MOST_UNSHOWN:
        yield "\n".join([f"expected at most {MOST_UNSHOWN} claims that nothing shows, got {len(unshown)}:", *unshown])


def report(found):
    print(f"{'page':32}claims  " + "  ".join(f"{way:>7}" for way in WAYS) + "  unshown")
    unshown = 0
    for page, of_page in found.items():
        counts = collections.Counter(claim.shown for claim in of_page)
        unshown += counts[None]
        shown = "  ".join(f"{counts[way]:7}" for way in WAYS)
        print(f"{page:32}{len(of_page):6}  {shown}  {counts[None]:7}")
    print(f"{unshown} claims that nothing shows, of at most {MOST_UNSHOWN}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="PAGE")
    args = parser.parse_args()
    listed = sources(SOURCES.read_text(encoding="utf-8"))
    found = all_claims(listed)
    if args.list and args.list not in found:
        parser.error(f"expected a page such as README.md, got {args.list}")
    if args.list:
        print("\n".join(claim.text for claim in found[args.list] if not claim.shown))
    else:
        report(found)


if __name__ == "__main__":
    main()
