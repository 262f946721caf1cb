#!/usr/bin/env python3
"""Tests release.py: that it names each thing that a release lacks. Tests that pip, Conan and CMake take the same files."""
import ast
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
import release  # noqa: E402

# A tree that is ready to be released as 1.2.3: for each file the parts that a release needs.
READY = {
    "include/sconce/version.hpp": ["#define SCONCE_VERSION_MAJOR 1\n#define SCONCE_VERSION_MINOR 2\n#define SCONCE_VERSION_PATCH 3"],
    "CMakeLists.txt": ["file(STRINGS include/sconce/version.hpp lines)\nproject(sconce VERSION ${version} LANGUAGES CXX)"],
    "pyproject.toml": ['[project.urls]\nHomepage = "https://a.org"', 'dynamic = ["version"]\npath = "apps/wheel/version.py"'],
    "conanfile.py": ['    url = "https://a.org"', '    def set_version(self):\n        load("include/sconce/version.hpp")'],
    "CHANGELOG.md": ["# Changelog\n\n## 1.2.3 (2030-01-02)\n\n- New.\n\n## 1.2.2 (2029-01-02)"],
    "CITATION.cff": ["version: 1.2.3", "date-released: 2030-01-02", "repository-code: https://a.org"],
    "docs/installation.md": ["find_package(sconce 1.2 REQUIRED)", 'GIT_REPOSITORY "https://a.org"'],
    "docs/release_1.2.md": ["# Release 1.2"],
    "SECURITY.md": ["Write to a@a.org."],
    ".github/workflows/ci.yml": ["name: ci"],
}


class Releases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, parts in READY.items():
            self.write(name, parts)

    def write(self, name, parts):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text("\n".join([*parts, ""]), encoding="utf-8")

    def lacks(self, name, *parts):
        """Returns what is lacking when the file has these parts instead."""
        self.write(name, parts)
        lines = release.lacking(self.root, "v1.2.3")
        self.write(name, READY[name])
        return lines

    def test_a_tree_that_is_ready_lacks_nothing(self):
        self.assertEqual(release.lacking(self.root, "v1.2.3"), [])

    def test_each_part_that_is_lacking_is_named(self):
        for name, parts in READY.items():
            for part in parts:
                if name not in ("SECURITY.md", ".github/workflows/ci.yml"):
                    with self.subTest(name, part=part):
                        lines = self.lacks(name, *(other for other in parts if other != part))
                        self.assertEqual([line.partition(": lacks ")[0] for line in lines], [name])
        self.assertEqual(self.lacks("SECURITY.md", "The project has no private address yet."),
                         ["SECURITY.md: lacks a private address for reports"])
        self.assertEqual(self.lacks(".github/workflows/ci.yml", "# It has not been run."),
                         [".github/workflows/ci.yml: lacks a run of the workflow"])

    def test_a_file_that_is_not_there_is_named(self):
        (self.root / "docs/release_1.2.md").unlink()
        self.assertEqual(release.lacking(self.root, "v1.2.3"), ["docs/release_1.2.md: lacks the notes"])

    def test_another_version_and_changes_after_it_are_named(self):
        self.assertEqual(self.lacks("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- New.\n\n## 1.2.3 (2030-01-02)"),
                         ["CHANGELOG.md: lacks '## 1.2.3 (<date>)' as its first section"])
        self.assertIn("CITATION.cff: lacks 'version: 1.3.0'", release.lacking(self.root, "v1.3.0"))
        self.assertEqual(release.lacking(self.root, "1.2.3"), ["--tag: expected v<major>.<minor>.<patch>, got 1.2.3"])


class Packages(unittest.TestCase):
    def test_all_read_the_version_of_the_header(self):
        lines = release.lacking(ROOT, "v0.0.0")
        self.assertFalse([line for line in lines if "the version of version.hpp" in line], lines)
        self.assertIn("include/sconce/version.hpp: lacks the version 0.0.0, which CMake, pip and Conan read there", lines)

    def test_pip_and_conan_take_the_same_sources(self):
        recipe = ast.parse((ROOT / "conanfile.py").read_text(encoding="utf-8"))
        values = {line.targets[0].id: line.value for item in recipe.body if isinstance(item, ast.ClassDef)
                  for line in item.body if isinstance(line, ast.Assign)}
        exported = {name.removesuffix("/*") for name in ast.literal_eval(values["exports_sources"])}
        wheel = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("force-include]")[2]
        packed = {line.partition(" = ")[0].strip('"') for line in wheel.splitlines() if '= "sconce/source/' in line}
        self.assertEqual(exported, packed | {"LICENSE"})
        self.assertNotIn("requires", values)


if __name__ == "__main__":
    unittest.main()
