#!/usr/bin/env python3
"""Tests that public_api.py detects the changes that affect a program that uses the library."""
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
import public_api  # noqa: E402

HEADER = pathlib.Path("include/sconce/training/trainer_options.hpp")
CHANGES = {
    "": [],
    "int max_epochs = 1;|": ["TrainerOptions::max_epochs"],
    "int max_epochs = 1;|int max_epochs = 2;": ["TrainerOptions::max_epochs"],
    "int max_epochs = 1;|int64_t max_epochs = 1;": ["TrainerOptions::max_epochs"],
    "int max_epochs = 1;|int max_epochs = 1; int more = 1;": [],
    "max_epochs|most_epochs": ["TrainerOptions::max_epochs"],
}


@unittest.skipUnless(shutil.which("doxygen"), "skipped: no Doxygen")
class PublicApi(unittest.TestCase):
    def api_with(self, change):
        """Returns the API of one header after some text in the header is replaced."""
        before, _, after = change.partition("|")
        header = (ROOT / HEADER).read_text(encoding="utf-8")
        self.assertIn(before, header)
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, HEADER)
            copy.parent.mkdir(parents=True)
            copy.write_text(header.replace(before, after) if before else header, encoding="utf-8")
            return public_api.public_api(pathlib.Path(folder))

    def test_the_headers_have_what_the_last_release_had(self):
        released = public_api.SNAPSHOT.read_text(encoding="utf-8").splitlines()
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        self.assertGreater(len(released), 2000)
        self.assertEqual(public_api.unnamed(released, public_api.public_api(ROOT), changelog), [])

    def test_a_removed_or_renamed_member_a_changed_default_and_a_changed_type_fail(self):
        released = self.api_with("")
        for change, names in CHANGES.items():
            lines = public_api.unnamed(released, self.api_with(change), "## Unreleased\n")
            found = [public_api.short_name(public_api.whole_name(line)) for line in lines]
            self.assertEqual(found, names, change)


class Changelog(unittest.TestCase):
    before = ['#include "sconce/a.hpp"', "sconce::A: class", "sconce::A::f: void (int x=1)", "sconce::f: int ()"]

    def missing(self, after, changelog):
        return public_api.unnamed(self.before, after, changelog + "\n## 0.1\n- `A::f`, `f`, `A`, `sconce/a.hpp`\n")

    def test_a_change_passes_if_the_first_section_has_its_name_in_backticks(self):
        after = ['#include "sconce/a.hpp"', "sconce::A: class", "sconce::A::f: void (int x=2)", "sconce::f: int ()"]
        self.assertEqual(self.missing(after, "## Unreleased\n- `A::f` has another default"), [])
        for changelog in ("A::f has another default", "`A` and `f` have another default", "`A::first`", "`B::A::f::g`"):
            self.assertEqual(self.missing(after, f"## Unreleased\n- {changelog}"), ["sconce::A::f: void (int x=1)"])

    def test_the_name_of_a_class_or_header_that_is_gone_is_enough(self):
        after = ["sconce::f: int ()"]
        self.assertEqual(self.missing(after, "## Unreleased\n- `A` and `sconce/a.hpp` are gone"), [])
        self.assertEqual(self.missing(after, "## Unreleased\n- `A` is gone"), ['#include "sconce/a.hpp"'])


if __name__ == "__main__":
    unittest.main()
