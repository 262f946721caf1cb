#!/usr/bin/env python3
"""The comparison of lessons with their twins notices what it should, and only that."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("compare_lessons.py")


class CompareLessons(unittest.TestCase):
    def compare(self, cpp, twin, exit_code=0):
        """Runs the comparison of a lesson that prints `cpp` with a twin that prints `twin`."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "01_fake.cpp").write_text("// Fake: a lesson.\n// Covers: T0.fake\n")
            (folder / "01_fake.py").write_text(f"print({twin!r})\n")
            program = folder / "01_fake"
            program.write_text(f"#!{sys.executable}\nprint({cpp!r})\nraise SystemExit({exit_code})\n")
            program.chmod(0o755)
            return subprocess.run([sys.executable, SCRIPT, "twins", "--bin", folder, "--lessons", folder,
                                   "--python", sys.executable], capture_output=True, text=True)

    def test_equal_text_passes(self):
        self.assertEqual(self.compare("loss 0.1234\n~ 3 ms", "loss 0.1234\n~ 3 ms").returncode, 0)

    def test_another_digit_fails_and_is_shown(self):
        done = self.compare("loss 0.1234", "loss 0.1235")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-loss 0.1235\n+loss 0.1234", done.stdout)

    def test_another_blank_or_line_fails(self):
        self.assertNotEqual(self.compare("Shape:  [2]", "Shape: [2]").returncode, 0)
        self.assertNotEqual(self.compare("one\ntwo", "one").returncode, 0)

    def test_figures_of_a_time_may_differ(self):
        self.assertEqual(self.compare("~ 3.25 ms, ratio -1e-05, nan", "~ 12 ms, ratio 0.5, 7").returncode, 0)

    def test_words_of_a_time_may_not_differ(self):
        self.assertNotEqual(self.compare("~ copy: 3 ms", "~ copy: 3 us").returncode, 0)
        self.assertNotEqual(self.compare("~ info: 3 ms", "~ #o: 3 ms").returncode, 0)

    def test_an_exit_code_fails(self):
        self.assertIn("exit code 3", self.compare("same", "same", exit_code=3).stderr)


if __name__ == "__main__":
    unittest.main()
