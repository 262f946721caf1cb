#!/usr/bin/env python3
"""Tests the quotes on the pages, such as examples, outputs of the recipes, and tables, and the targets of the links."""
import json
import pathlib
import re
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("docs", "tests/build")]
sys.dont_write_bytecode = True
import counts  # noqa: E402
import recipes  # noqa: E402
import release_notes  # noqa: E402
import terminal  # noqa: E402

PAGES = ["*.md", ".github/*.md", "docs/*.md", "apps/**/*.md", "tests/**/*.md"]
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]  # of Keep a Changelog, in its order


def public_classes():
    """Returns the classes in the public headers, except for structs of options. A module is listed under the name of
    its holder."""
    names = set()
    for header in (ROOT / "include/sconce").rglob("*.hpp"):
        if header.parent.name == "detail":
            continue
        private = r"^namespace detail \{.*?^\}  // namespace detail$"
        text = re.sub(private, "", header.read_text(), flags=re.M | re.S)
        holders = set(re.findall(r"^TORCH_MODULE\((\w+)\);", text, re.M))
        for name in re.findall(r"^(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?:\s+: [^{;]*)? \{", text, re.M):
            names.add(name.removesuffix("Impl") if name.removesuffix("Impl") in holders else name)
    return {name for name in names if not name.endswith("Options")}


def thread_tests():
    """Returns the names of all tests, and of the tests in the programs that the preset tsan runs."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    chosen = next(preset["filter"]["include"]["name"] for preset in presets if preset["name"] == "tsan")
    lists = (ROOT / "tests/CMakeLists.txt").read_text()
    every, checked = set(), set()
    for program, sources in re.findall(r"^sconce_add_test_program\((test-\S+)\s(.*?)\)", lists, re.M | re.S):
        for source in re.findall(r"\S+\.cpp", sources):
            found = counts.cases((ROOT / "tests" / source).read_text())
            every.update(name for name, _ in found)
            checked.update(name for name, tags in found if re.search(chosen, program) or "[fits-in-threads]" in tags)
    return every, checked


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text):
    """Returns the anchors of a page's headings, as GitHub and the site generate them."""
    text = without_code(text)
    headings = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in re.findall(r"^#+ (.*)$", text, re.M))
    found = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {name if found.index(name) == i else f"{name}-{found[:i].count(name)}" for i, name in enumerate(found)}


def broken_links(page, text):
    """Yields the links on a page that point to a missing file or a missing heading."""
    links = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", without_code(text))
    for target, anchor in links:
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{page.relative_to(ROOT)}: {target}#{anchor}"


class Pages(unittest.TestCase):
    def test_each_link_between_pages_leads_to_a_file_and_a_heading(self):
        pages = {page for pattern in PAGES for page in ROOT.glob(pattern)}
        self.assertGreater(len(pages), 50)
        self.assertEqual([link for page in sorted(pages) for link in broken_links(page, page.read_text())], [])
        planted = "[a](docs/limits.md#platforms) [b](docs/limits.md#no-such) [c](nothing.md)"
        self.assertEqual(list(broken_links(ROOT / "README.md", planted)),
                         ["README.md: docs/limits.md#no-such", "README.md: nothing.md#"])

    def test_the_readme_fits_on_a_few_screens_and_each_alternative_has_its_sources(self):
        page = (ROOT / "README.md").read_text()
        self.assertLess(page.count("\n"), 150)
        table = re.search(r"^## Alternatives\n\n(.*?)\n\n", page, re.M | re.S)[1].splitlines()
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table if "---" not in row]
        projects = rows[0][2:]
        self.assertEqual(len(projects), 6)
        self.assertTrue(all(cell for row in rows[1:] for cell in row), rows)
        faq = (ROOT / "docs/faq.md").read_text()
        sources = re.findall(r"^\| ([^|]+) \| [^|]*\d[^|]* \| .*https://", faq, re.M)
        self.assertEqual(sources, projects)

    def test_gpu_cases_and_their_records_are_counted_by_name(self):
        source = ('TEST_CASE("one "\n          "name", "[gpu]") {}\nTEST_CASE("slow", "[.][gpu][slow]") {}\n'
                  'TEST_CASE("on the CPU", "[core]") {}\n')
        self.assertEqual(counts.gpu_cases(source), {"one name"})
        results = '<testcase name="GPU&apos;s" time="1" status="run"/><testcase name="b" time="1" status="fail"/>'
        self.assertEqual(counts.recorded_cases(results, "# renamed\nGPU's\ta GPU's\n"), {"a GPU's"})

    def test_the_first_section_of_the_changelog_has_one_line_per_change_in_the_order_of_keep_a_changelog(self):
        section = re.search(r"^## .*?\n(.*?)(?=^## )", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)[1]
        titles = re.findall(r"^### (.*)$", section, re.M)
        self.assertEqual(titles, [title for title in SECTIONS if title in titles])
        others = [line for line in section.splitlines() if line and not line.startswith(("- ", "### "))]
        self.assertEqual(others, [])

    def test_the_release_notes_are_the_first_section_of_the_changelog(self):
        self.assertEqual(release_notes.notes((ROOT / "CHANGELOG.md").read_text()), release_notes.PAGE.read_text())
        section = "## 0.3.0 (2027-01-02)\n\n### Added\n\n- [A](docs/a.md#b), [c](apps/c.md)\n"
        made = release_notes.notes(f"# C\n\n{section}\n## 0.2.0\n\n- no\n")
        self.assertIn("Released on 2027-01-02.", made)
        self.assertIn("\n## Added\n\n- [A](a.md#b), [c](../apps/c.md)\n", made)
        self.assertNotIn("no", made.split("- [A]")[1])

    def test_from_libtorch_quotes_the_programs_of_the_examples(self):
        sources = [textwrap.dedent(re.sub(r"^ +", "", (ROOT / f"apps/examples/{name}.cpp").read_text(), flags=re.M))
                   for name in ("mnist", "mnist_plain")]
        blocks = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "docs/from_libtorch.md").read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 8)
        for block in blocks:
            lines = re.sub(r"^ +", "", block, flags=re.M)
            self.assertTrue(any(lines in source for source in sources), f"neither program has\n{block}")

    def test_both_pages_on_exported_programs_have_the_same_table_of_files(self):
        tables = [re.findall(r"^\| written in .*?\n\n", (ROOT / f"docs/{page}.md").read_text(), re.M | re.S)
                  for page in ("export", "exported_programs")]
        self.assertEqual(len(tables[0]), 1)
        self.assertEqual(*tables)

    def test_the_page_on_export_quotes_the_errors_of_record(self):
        sources = "".join(file.read_text() for file in sorted((ROOT / "src/program").glob("*.cpp")))
        messages = re.sub(r'"\s*,?\s*"', "", sources)  # messages consist of several literals
        page = (ROOT / "docs/export.md").read_text()
        table = re.search(r"^\| the function .*?\n\n", page, re.M | re.S)[0].strip().splitlines()[2:]
        self.assertEqual(len(table), 15)
        for row in table:
            words = row.split("|")[2].strip(" `")
            self.assertIn(words, messages)

    def test_the_page_on_other_programs_quotes_the_example(self):
        sources = "".join((ROOT / "apps/examples" / f"c_interface{name}").read_text() for name in (".h", "_main.c", ".py"))
        lines_of_sources = re.sub(r"^ +", "", sources, flags=re.M)
        page = (ROOT / "docs/inside_another_program.md").read_text()
        blocks = re.findall(r"^```(?:c|python)\n(.*?)^```$", page, re.M | re.S)
        self.assertEqual(len(blocks), 6)
        for block in blocks:
            self.assertIn(re.sub(r"^ +", "", block, flags=re.M), lines_of_sources)

    def test_the_page_on_threads_has_every_public_class_and_a_test_for_each_yes(self):
        page = (ROOT / "docs/thread_safety.md").read_text()
        rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| .*`.*\|$", page, re.M)]
        rows = [row for row in rows if row[1] == "no" or re.match(r"—|yes|refused", row[1])]
        classes = [name for row in rows if len(row) == 4 for name in re.findall(r"`(\w+)`", row[0])]
        self.assertEqual(sorted(classes), sorted(public_classes()))
        tests = dict(re.findall(r"^(\d+)\. `(.*)`$", page, re.M))
        every, checked = thread_tests()
        self.assertEqual(sorted(set(tests.values()) - every), [])
        for row in rows:
            for cell in row[1:-1]:
                found = re.fullmatch(r"no|—|(yes|refused) \((\d+(?:, \d+)*)\)", cell)
                self.assertTrue(found, f"{row[0]}: expected no, —, yes (numbers), or refused (numbers), got {cell}")
                for number in (found[2] or "").split(", ") if found[1] else ():
                    self.assertIn(tests.get(number), checked if found[1] == "yes" else every, row[0])

    def test_each_recipe_shows_what_it_prints(self):
        found = recipes.recipes(recipes.PAGE.read_text())
        self.assertEqual(len(found), 19)
        for recipe in found:
            self.assertEqual(len(recipe.printed), 2 if recipe.command else 1, recipe.name)

    def test_the_picture_of_the_demo_has_the_lines_of_its_programs(self):
        text = "".join((ROOT / "apps" / file).read_text() for file in ("tour/main.cpp", "tour/CMakeLists.txt"))
        lines = re.findall(r">([^<>]+)</text>", (ROOT / "docs/demo.svg").read_text())
        self.assertEqual(lines[0], terminal.COMMAND)
        for words in ("This machine", "The device helpers and their results", "The product of two", "LeNet learns"):
            line = next(line for line in lines if line.startswith(words))
            self.assertIn(line.strip(), text)


if __name__ == "__main__":
    unittest.main()
