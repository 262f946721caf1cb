#!/usr/bin/env python3
"""Tests the counter of the lessons: a program with known work must have these counts, and a program with more work must
fail.

  counter_test.py LIBRARY PROGRAM
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import counting

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY, PROGRAM = sys.argv[1:]
# The product requires 2*3*4 multiplications and as many additions. Each of the convolution's 2*2*2 values requires 9.
NAME = "using_gpus/01_planted"
WORK = {"host reads": 2, "product 2x3 @ 3x4": 1, "sum 2x3 + 2x3": 1, "convolution 1x1x4x4 with 2x1x3x3": 1,
        "floating-point operations": 2 * 2 * 3 * 4 + 2 * 8 * 9}


class Counter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.server = pathlib.Path(folder.name) / "server"
        subprocess.run([sys.executable, HERE.parent / "support/python_server.py", "serve", cls.server, "torch"],
                       check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.table = self.folder / "counts.json"
        (self.folder / NAME).parent.mkdir()
        shutil.copy(PROGRAM, self.folder / NAME)
        shutil.copy(HERE / "planted_work.py", self.folder / f"{NAME}.py")
        (self.folder / f"{NAME}.cpp").write_text("// Planted work.\n")
        self.write({row: [number, 0, 0] for row, number in WORK.items()})

    def write(self, rows):
        self.table.write_text(json.dumps({NAME: rows}))

    def compare(self, *options, serves=True, **variables):
        options = [*options, "--server", self.server] if serves else options
        done = subprocess.run(
            [sys.executable, HERE.parent / "apps/compare_lessons.py", "twins", NAME, "--bin", self.folder,
             "--lessons", self.folder, "--python", sys.executable, "--counter", LIBRARY, "--table", self.table,
             *options], capture_output=True, text=True, env=dict(os.environ, **variables))
        self.assertNotIn("nobody serves", done.stdout)
        return done

    def test_the_known_work_has_its_counts(self):
        done = self.compare("--counts", "show")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"product 2x3 @ 3x4 +1 +1\n")

    def test_planted_work_fails_on_its_side(self):
        for side, serves in [("C++", True), ("Python", True), ("Python", False)]:
            done = self.compare(serves=serves, PLANTED=side)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            wrong = [line for line in done.stdout.splitlines() if "expected" in line]
            self.assertEqual(wrong, [f"{NAME}: {side} with no GPU: {difference}" for difference in [
                "host reads: expected 2, got 3", "product 2x3 @ 3x4: expected 1, got 0",
                "product 2x3.t() @ 2x4: expected 0, got 1"]])

    def test_a_lesson_that_is_not_in_the_table_fails(self):
        self.assertEqual(counting.differences({}, NAME, "C++", 0, WORK),
                         [f"{NAME}: counts.json has no such lesson"])

    def test_the_written_table_is_that_of_the_run_and_wants_reasons(self):
        self.write({"host reads": [7, 1, 2]})
        self.assertEqual(self.compare("--counts", "write", PLANTED="C++").returncode, 1)
        table = json.loads(self.table.read_text())[NAME]
        self.assertEqual(table["host reads"], {"C++": [3, 1, 2], "Python": [2, 1, 2], "why": ""})
        self.assertEqual(table["sum 2x3 + 2x3"], [1, 0, 0])
        row = {NAME: {"host reads": table["host reads"]}}
        reads = {"host reads": 3}
        self.assertEqual(counting.without_reason(row, NAME), [
            f"{NAME}: host reads: C++ and Python differ, and counts.json does not say why"])
        row[NAME]["host reads"]["why"] = "planted"
        self.assertEqual(counting.without_reason(row, NAME), [])
        self.assertEqual(counting.differences(row, NAME, "C++", 0, reads), [])
        self.assertEqual(counting.differences(row, NAME, "Python", 0, reads), [
            f"{NAME}: Python with no GPU: host reads: expected 2, got 3"])
        counting.update(row, NAME, 0, {"C++": {"host reads": 2}, "Python": {"host reads": 2}})
        self.assertEqual(row[NAME]["host reads"], [2, 1, 2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
