"""Counts the tests and lessons that run on real GPUs, for use in the pages. docs/readme.py fills in the numbers."""
import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "apps/lessons"))
sys.dont_write_bytecode = True
import lessons as lessons_of_tutorials  # noqa: E402
import page  # noqa: E402

LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
CASE = re.compile(rf"^TEST_CASE(?:_METHOD)?\(\s*(?:\w+,\s*)?{LITERALS}(?:,\s*{LITERALS})?", re.M)


def joined(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))


def cases(source):
    """Returns the names and tags of the test cases in a source file."""
    return [(joined(name), joined(tags)) for name, tags in CASE.findall(source)]


def gpu_cases(source):
    """Returns the names of the test cases in a source file that have the label gpu. Test cases tagged [slow] do not
    have this label."""
    return {name for name, tags in cases(source) if "[gpu]" in tags and "[slow]" not in tags}


def recorded_cases(results, renamed):
    """Returns the current names of the test cases in a results file."""
    names = dict(line.split("\t") for line in renamed.splitlines() if "\t" in line)
    passed = re.findall(r'<testcase name="([^"]+)"[^>]* status="run"', results)
    return {names.get(name, name) for name in map(html.unescape, passed)}


def gpu_tests():
    """Returns the number of GPU test cases and the number of them that appear in the results file for the H100."""
    found = set()
    for source in (ROOT / "tests").rglob("*.cpp"):
        found |= gpu_cases(source.read_text(encoding="utf-8"))
    files = (ROOT / "docs/gpu_results.xml", ROOT / "tests/renamed_tests.txt")
    results, renamed = (file.read_text(encoding="utf-8") for file in files)
    return len(found), len(found & recorded_cases(results, renamed))


def lessons():
    """Returns the total number of lessons and the number of lessons whose current outputs were all recorded on a
    GPU."""
    everyone = lessons_of_tutorials.lessons()
    return len(everyone), sum(not page.waiting(lesson) for lesson in everyone)
