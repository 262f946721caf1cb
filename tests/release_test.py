#!/usr/bin/env python3
"""Tests that CMake, pip, and Conan read one version and take the same sources."""
import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
import release  # noqa: E402


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
        taglines = {re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)[1] for name, pattern in places.items()}
        self.assertEqual(len(taglines), 1, taglines)

    def test_all_distributions_are_named_sconce_cpp(self):
        for name, pattern in {"pyproject.toml": r'^name = "(.*)"$', "conanfile.py": r'^    name = "(.*)"$'}.items():
            self.assertEqual(re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)[1], "sconce-cpp", name)


if __name__ == "__main__":
    unittest.main()
