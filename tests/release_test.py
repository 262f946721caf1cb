#!/usr/bin/env python3
"""Tests that CMake, pip, and Conan read the same version and use the same sources."""
import ast
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "docs"))
import release  # noqa: E402
import release_notes  # noqa: E402


class Packages(unittest.TestCase):
    def test_all_read_the_version_of_the_header(self):
        lines = release.lacking("v0.0.0")
        self.assertFalse([line for line in lines if "the version of version.hpp" in line], lines)
        self.assertIn("include/sconce/version.hpp: lacks the version 0.0.0, which CMake, pip and Conan read there", lines)

    def test_pip_and_conan_take_the_same_sources(self):
        recipe = ast.parse((ROOT / "conanfile.py").read_text(encoding="utf-8"))
        values = {line.targets[0].id: line.value for item in recipe.body if isinstance(item, ast.ClassDef)
                  for line in item.body if isinstance(line, ast.Assign)}
        exported = {name.removesuffix("/*") for name in ast.literal_eval(values["exports_sources"])}
        wheel = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("force-include]")[2]
        packed = {line.partition(" = ")[0].strip('"') for line in wheel.splitlines() if '= "sconce/source/' in line}
        self.assertEqual(exported, packed | {"LICENSE", "THIRD_PARTY.txt"})
        self.assertNotIn("requires", values)

    def test_all_have_one_tagline(self):
        places = {"CITATION.cff": r"^abstract: (.*)\.$", "CMakeLists.txt": r'DESCRIPTION "(.*)"\)$',
                  "conanfile.py": r'^    description = "(.*)"$', "pyproject.toml": r'^description = "(.*)"$'}
        taglines = {re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)[1]
                    for name, pattern in places.items()}
        self.assertEqual(len(taglines), 1, taglines)

    def test_all_distributions_are_named_sconce_cpp(self):
        for name, pattern in {"pyproject.toml": r'^name = "(.*)"$', "conanfile.py": r'^    name = "(.*)"$'}.items():
            self.assertEqual(re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)[1], "sconce-cpp", name)


class Release(unittest.TestCase):
    def test_a_prepared_copy_lacks_only_what_needs_a_person(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            names = [name for name, *_ in release.WANTED + release.PREPARED]
            for name in dict.fromkeys(name.format(0, 3, 0) for name in names):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            release.prepare("v0.3.0", "2026-12-01", root)
            citation = (root / "CITATION.cff").read_text(encoding="utf-8")
            self.assertIn("version: 0.3.0\ndate-released: 2026-12-01\n", citation)
            changelog, notes = ((root / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "docs/release_0.3.md"))
            self.assertEqual(notes, release_notes.notes(changelog))
            lines = release.lacking("v0.3.0", root)
            by_persons = r"lacks (the repository's address|a private address|a run of)"
            self.assertEqual([line for line in lines if not re.search(by_persons, line)], [])
            release.prepare("v0.3.0", "2026-12-01", root, "https://example.org/sconce")
            self.assertEqual(release.lacking("v0.3.0", root), ["SECURITY.md: lacks a private address for reports",
                             ".github/workflows/ci.yml: lacks a run of the workflow"])
            prepared = ["CITATION.cff", "CHANGELOG.md", "conanfile.py", "include/sconce/version.hpp", "pyproject.toml"]
            once = {name: (root / name).read_bytes() for name in prepared}
            release.prepare("v0.3.0", "2026-12-01", root, "https://example.org/sconce")
            self.assertEqual(once, {name: (root / name).read_bytes() for name in once})
            (root / "docs/release_0.4.md").write_text("# Release 0.4\n", encoding="utf-8")
            release.prepare("v0.4.1", "2027-01-01", root)
            lines = [line for line in release.lacking("v0.4.1", root) if re.search(r"version\.hpp|find_package", line)]
            self.assertEqual(lines, [])

    def test_a_tag_that_is_no_version_is_refused(self):
        self.assertEqual(release.lacking("0.3"), ["--tag: expected v<major>.<minor>.<patch>, got 0.3"])
        with self.assertRaises(ValueError):
            release.prepare("0.3", "2026-12-01")

    def test_the_recipes_name_the_archive_and_its_hash(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder, "a.tar.gz")
            archive.write_bytes(b"")
            release.fill_in_recipes(pathlib.Path(folder), "0.3.0", archive)
            texts = [file.read_text(encoding="utf-8") for file in pathlib.Path(folder, "packaging").glob("*/*")]
            self.assertEqual(len(texts), 4)
            self.assertFalse([text for text in texts if re.search(r"@[A-Z]", text)])
            hash_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            self.assertTrue(any(hash_of_nothing in text for text in texts))


if __name__ == "__main__":
    unittest.main()
