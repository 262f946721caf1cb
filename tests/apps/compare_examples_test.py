#!/usr/bin/env python3
"""Tests that the comparison of examples with their twins reports each kind of difference, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("compare_examples.py")


class CompareExamples(unittest.TestCase):
    def compare(self, cpp, twin, *names, lines=30, exit_code=0):
        """Compares an example that has this number of lines and prints `cpp` with its twin."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "fake.cpp").write_text("//\n" * lines)
            (folder / "fake.py").write_text(f"print({twin!r})\n")
            program = folder / "fake"
            program.write_text(f"#!{sys.executable}\nprint({cpp!r})\nraise SystemExit({exit_code})\n")
            program.chmod(0o755)
            command = [sys.executable, SCRIPT, *names, "--bin", folder, "--examples", folder,
                       "--python", sys.executable]
            return subprocess.run(command, capture_output=True, text=True)

    def test_equal_text_passes(self):
        done = self.compare("loss 0.1234", "loss 0.1234", "fake")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 1 examples", done.stdout)

    def test_another_digit_fails_and_is_shown(self):
        done = self.compare("~ 0.1234", "~ 0.1235")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-~ 0.1235\n+~ 0.1234", done.stdout)

    def test_a_line_too_many_fails(self):
        done = self.compare("same", "same", lines=31)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("fake.cpp: expected at most 30 lines, got 31", done.stdout)

    def test_an_exit_code_fails(self):
        self.assertIn("exit code 3", self.compare("same", "same", exit_code=3).stderr)

    def test_a_name_that_is_none_fails(self):
        self.assertIn("no example of these names: other", self.compare("same", "same", "other").stderr)


if __name__ == "__main__":
    unittest.main()
