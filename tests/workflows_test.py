#!/usr/bin/env python3
"""Tests the rules for the GitHub workflows: actions pinned by hash and minimal permissions."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")])


class Workflows(unittest.TestCase):
    def test_an_action_is_named_by_a_hash_with_its_version_and_by_one_hash_everywhere(self):
        found = {}
        for file in FILES:
            for line in re.findall(r"uses: (?!\./)(.*)", file.read_text(encoding="utf-8")):
                self.assertRegex(line, r"^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", file)
                action, _, pin = line.partition("@")
                self.assertEqual(found.setdefault(action, pin), pin, f"{file}: {action}")
        self.assertGreater(len(found), 5)

    def test_a_workflow_may_only_read_unless_a_job_says_more(self):
        for file in ROOT.glob(".github/workflows/*.yml"):
            self.assertIn("\npermissions:\n  contents: read\n", file.read_text(encoding="utf-8"), file)

    def test_every_preset_and_script_that_a_workflow_names_exists(self):
        presets = re.findall(r'"name": "([\w-]+)"', (ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
        text = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
        named = re.findall(r"--preset (\w[\w-]*)", text) + re.search(r"preset: \[(.*)\]", text)[1].split(", ")
        self.assertEqual([name for name in named if name not in presets], [])
        scripts = re.findall(r"python3 ([\w/]+\.py)", text)
        self.assertGreater(len(scripts), 3)
        self.assertEqual([name for name in scripts if not (ROOT / name).exists()], [])


if __name__ == "__main__":
    unittest.main()
