#!/usr/bin/env python3
"""Tests that the comparison of lessons with their twins reports each kind of difference, and nothing else."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from made_up_lessons import ROOT, Project

SERVER = ROOT / "tests/support/python_server.py"


class CompareLessons(unittest.TestCase):
    def compare(self, cpp, twin, *options, has_server=False, page=None, labels="", material=None, **lesson):
        """Compares a lesson that prints `cpp` with a twin that prints `twin`."""
        with tempfile.TemporaryDirectory() as folder:
            project = Project(folder)
            project.add("01_fake", cpp, twin, **lesson)
            project.write("apps/lessons/labels.txt", labels)
            if page:
                project.show("01_fake", **page)
            if material:
                (project.shared / "labels.md").write_text(material)
            if has_server:
                server = pathlib.Path(folder) / "server"
                options = [*options, "--server", server]
                subprocess.run([sys.executable, SERVER, "serve", server, "json"], check=True,
                               env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
            return project.run("tests/apps/compare_lessons.py", "twins", *options)

    def assert_passes(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_fails(self, done, text=""):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(text, done.stdout)

    def test_equal_text_passes(self):
        self.assert_passes(self.compare("loss 0.1234\n~ 3 ms", "loss 0.1234\n~ 3 ms"))

    def test_another_digit_fails_and_is_shown(self):
        self.assert_fails(self.compare("loss 0.1234", "loss 0.1235"), "-loss 0.1235\n+loss 0.1234")

    def test_another_blank_or_line_fails(self):
        self.assert_fails(self.compare("Shape:  [2]", "Shape: [2]"))
        self.assert_fails(self.compare("one\ntwo", "one"))

    def test_figures_of_a_time_may_differ(self):
        self.assert_passes(self.compare("~ 3.25 ms, ratio -1e-05, nan", "~ 12 ms, ratio 0.5, 7"))

    def test_words_of_a_time_may_not_differ(self):
        self.assert_fails(self.compare("~ copy: 3 ms", "~ copy: 3 us"))
        self.assert_fails(self.compare("~ info: 3 ms", "~ #o: 3 ms"))

    def test_an_exit_code_fails(self):
        self.assertIn("exit code 3", self.compare("same", "same", exit_code=3).stderr)

    def test_another_text_with_nonsense_for_the_gpus_fails(self):
        self.assert_fails(self.compare("cpu", "cpu", nonsense="cuda"), "--- empty\n+++ nonsense")

    def test_the_page_counts_only_where_it_is_asked_for(self):
        self.assert_passes(self.compare("loss 0.12", "loss 0.12", page={"output": "cost 0.12"}))
        self.assert_fails(self.compare("loss 0.12", "loss 0.12", "--page", page={"output": "cost 0.12"}),
                          "--- page\n+++ C++")

    def test_of_the_page_only_figures_of_a_time_may_differ(self):
        self.assert_passes(self.compare("0.12\n~ 3 ms", "0.12\n~ 3 ms", "--page", page={"output": "0.12\n~ 4 ms"}))
        self.assert_fails(self.compare("0.12\n~ 3 ms", "0.12\n~ 3 ms", "--page", page={"output": "0.13\n~ 3 ms"}))
        self.assert_fails(self.compare("0.12\n~ 3 ms", "0.12\n~ 3 ms", "--page", page={"output": "0.12\n~ 3 s"}))

    def test_figures_of_another_cpu_are_not_compared_but_words_are(self):
        done = self.compare("loss 0.12", "loss 0.12", "--page", page={"output": "loss 0.13", "cpu": "another"})
        self.assert_passes(done)
        self.assertIn("its figures are not compared", done.stdout)
        self.assert_fails(self.compare("loss 0.12", "loss 0.12", "--page",
                                       page={"output": "cost 0.12", "cpu": "another"}))

    def test_a_page_of_another_libtorch_is_not_compared(self):
        done = self.compare("loss 0.12", "loss 0.12", "--page", page={"output": "cost", "torch": "2.14.0"})
        self.assert_passes(done)
        self.assertIn("the page is of LibTorch 2.14.0: not compared", done.stdout)

    LABELS = "T0.fake always First: …\nT0.fake gpu GPU: …\nT0.fake always ~ Time: … seconds\nT0.other always X\n"

    def test_labels_in_order_pass_and_are_counted(self):
        text = "0\nFirst: 1\n~ Time: 2 seconds"
        done = self.compare(text, text, "--labels", labels=self.LABELS)
        self.assert_passes(done)
        self.assertIn("01_fake: 2 of 2 labels", done.stdout)

    def test_a_label_missing_or_out_of_order_or_on_another_kind_of_line_fails(self):
        for text in ["First: 1", "~ Time: 2 seconds\nFirst: 1", "~ First: 1\n~ Time: 2 seconds",
                     "First: 1\nTime: 2 seconds", "the First: 1\n~ Time: 2 seconds", "First: \n~ Time: 2 seconds"]:
            done = self.compare(text, text, "--labels", labels=self.LABELS)
            self.assert_fails(done, "T0.fake prints, missing or out of order: ")
            self.assert_passes(self.compare(text, text, labels=self.LABELS))

    def test_a_label_for_a_machine_without_a_gpu_is_asked_for_there(self):
        self.assert_fails(self.compare("1", "1", "--labels", labels="T0.fake no-gpu No GPU.\n"))

    def test_a_list_without_a_label_of_its_origin_fails(self):
        row = "| T0.fake | `First: …` / `GPU: …` / `Time: … seconds`, or none | `x` |\n| T0.other | `X` | |\n"
        text = "First: 1\n~ Time: 2 seconds"
        self.assert_passes(self.compare(text, text, "--labels", labels=self.LABELS, material=row))
        self.assert_fails(self.compare(text, text, "--labels", labels=self.LABELS,
                                       material=row.replace("/ `GPU", "/ `Second: …` / `GPU")),
                          "labels.txt and labels.md differ in T0.fake")
        self.assert_fails(self.compare(text, text, "--labels", labels=self.LABELS,
                                       material=row + "| T0.new | `N` | |\n"))

    def test_a_server_runs_the_twin(self):
        done = self.compare("loss 0.1234", "loss 0.1234", has_server=True)
        self.assert_passes(done)
        self.assertNotIn("nobody serves", done.stdout)
        self.assert_fails(self.compare("loss 0.1234", "loss 0.1235", has_server=True))

    def test_without_a_server_the_twin_has_a_process_of_its_own(self):
        done = self.compare("same", "same", "--server", "/nowhere/server")
        self.assert_passes(done)
        self.assertIn("nobody serves at /nowhere/server", done.stdout)


if __name__ == "__main__":
    unittest.main()
