#!/usr/bin/env python3
"""The comparison of lessons with their twins notices what it should, and only that."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("compare_lessons.py")
SERVER = SCRIPT.parents[1] / "support/python_server.py"


class CompareLessons(unittest.TestCase):
    def compare(self, cpp, twin, *options, exit_code=0, nonsense=None, shown=None, has_server=False):
        """Runs the comparison of a lesson that prints `cpp` with a twin that prints `twin`."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "01_fake.cpp").write_text("// Fake: a lesson.\n// Covers: T0.fake\n")
            (folder / "01_fake.py").write_text(f"print({twin!r})\n")
            (folder / "README.md").write_text(f'<a name="output-01_fake"></a>\n```text\n{shown}\n```\n')
            program = folder / "01_fake"
            program.write_text(f"#!{sys.executable}\nimport os\n"
                               "is_empty = os.environ['CUDA_VISIBLE_DEVICES'] == ''\n"
                               f"print({cpp!r} if is_empty else {nonsense or cpp!r})\n"
                               f"raise SystemExit({exit_code})\n")
            program.chmod(0o755)
            options = [*options, "--bin", folder, "--lessons", folder, "--python", sys.executable]
            if has_server:
                options += ["--server", folder / "server"]
                subprocess.run([sys.executable, SERVER, "serve", folder / "server", "json"], check=True,
                               env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
            return subprocess.run([sys.executable, SCRIPT, "twins", *options], capture_output=True, text=True)

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

    def test_another_text_with_nonsense_for_the_gpus_fails(self):
        done = self.compare("cpu", "cpu", nonsense="cuda")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--- empty\n+++ nonsense", done.stdout)

    def test_the_page_may_differ_by_figures_alone_and_counts_only_where_it_is_asked_for(self):
        self.assertEqual(self.compare("loss 0.12", "loss 0.12", "--page", shown="loss 0.34").returncode, 0)
        done = self.compare("loss 0.12", "loss 0.12", "--page", shown="cost 0.12")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--- page\n+++ C++", done.stdout)
        self.assertEqual(self.compare("loss 0.12", "loss 0.12", shown="cost 0.12").returncode, 0)

    def test_a_server_runs_the_twin(self):
        done = self.compare("loss 0.1234", "loss 0.1234", has_server=True)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("nobody serves", done.stdout)
        self.assertNotEqual(self.compare("loss 0.1234", "loss 0.1235", has_server=True).returncode, 0)

    def test_without_a_server_the_twin_has_a_process_of_its_own(self):
        done = self.compare("same", "same", "--server", "/nowhere/server")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nobody serves at /nowhere/server", done.stdout)


if __name__ == "__main__":
    unittest.main()
