#!/usr/bin/env python3
"""Lists the claims of README.md that nothing checks.

A claim is a sentence, or a row of a table, with a number, a comparative, "every", "never", or "bit for bit". Parts that
docs/readme.py fills, and blocks of code, which other tests compare, are left out. For each other claim SOURCES names
the file that has the same fact. docs_test.py checks that it does, and that nothing is left.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORDS = r"\w+er than|faster|slower|smaller|larger|fewer|newer|more|most|less|every|never|bit for bit"
CLAIM = re.compile(rf"\d|\b(?:{WORDS})\b", re.I)

# Words of a claim, a file, and a regular expression that the file matches.
SOURCES = [
    ("a thin C++20 layer", "cmake/SconceTorch.cmake", r"cxx_std_20"),
    ("where PyTorch and Lightning offer more", "docs/faq.md", r"FSDP and DeepSpeed"),
    ("several GPUs to hold their weights", "docs/limits.md", r"sharded weights"),
    ("Linux on x86-64, CMake 3.25", "docs/installation.md", r"- Linux on x86-64\n- CMake 3\.25 and Ninja\n"),
    ("and Python 3.11", "docs/installation.md", r"- Python 3\.11 or newer with `venv` and `pip`"),
    ("compute capability 7.5", "docs/installation.md", r"capability 7\.5 or newer, and a driver .*, which is 580"),
    ("`demo` downloads 3.0 GB", "docs/installation.md", r"\| 3\.0 GB \| 5\.4 GB \|"),
    ("about 4 minutes", "CONTRIBUTING.md", r"\| 3 min 48 s \|"),
    ("`demo-cpu` downloads 0.2 GB", "docs/installation.md", r"`libtorch-dev` 2\.14\.1.*\| 0\.18 GB \|"),
    ("took 15 minutes on two cores", "CONTRIBUTING.md", r"On 2 cores this took:(?:.|\n)*\| 14 min 55 s \|"),
    ("a folder of 374 MB", "docs/ship_a_program.md",
     r"\| with `CPU` \| 374 MB \|(?:.|\n)*\| without `CPU` \| 3,670 MB \|"),
    ("| maturity |", "docs/faq.md",
     r"0\.24\.0(?:.|\n)*0\.22\.0-pre\.2(?:.|\n)*0\.11\.0(?:.|\n)*0\.4\.0(?:.|\n)*2\.6\.2"),
    ("versions of\n2026", "docs/faq.md", r"of 2026-03-26(?:.|\n)*of 2026-07-20"),
    ("equals an uninterrupted one", "docs/determinism.md",
     r"the CPU, with one or two processes, and the same data, options, and threads"),
    ("until\n1.0", "docs/stability.md", r"Before 1\.0 a minor version may change names"),
    ("every page, by task", "tests/conventions_test.cpp", r"the index by task links to every page"),
    ("CC BY 4.0", "apps/train/digits/README.md", r"CC BY 4\.0"),
    ("BSD 3-Clause", "apps/train/diabetes/README.md", r"BSD 3-Clause"),
]


def claims(page):
    """Returns the claims of a page without its filled parts and its code."""
    text = re.sub(r"<!-- docs/readme\.py.*?<!-- end -->", "", page, flags=re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    pieces = re.split(r"(?<=[.:;])\s+(?=[A-Z`])|\n\n|\n(?=[-|#])", text)
    return [piece.strip() for piece in pieces if CLAIM.search(piece)]


def unchecked(page):
    """Returns the claims without a source."""
    return [claim for claim in claims(page) if not any(words in claim for words, *_ in SOURCES)]


def wrong_sources(page):
    """Yields the rows of SOURCES that the page does not use, or whose file lacks the fact."""
    for words, file, pattern in SOURCES:
        if not any(words in claim for claim in claims(page)):
            yield f"README.md has no claim with '{words}'"
        elif not re.search(pattern, (ROOT / file).read_text(encoding="utf-8")):
            yield f"{file}: expected {pattern}, for '{words}' in README.md"


if __name__ == "__main__":
    README = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in [*wrong_sources(README), *unchecked(README)]:
        print(line)
