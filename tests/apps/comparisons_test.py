#!/usr/bin/env python3
"""Tests that the comparisons with Python fail for a lesson, an example, and a benchmark that differ."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "apps/bench")]
import bench  # noqa: E402
import times  # noqa: E402


class Comparisons(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, script, cpp, twin, exit_code=0, *options):
        """Compares a program that prints `cpp` with a twin that prints `twin`."""
        kind = "lessons" if "twins" in script else "examples"
        folder = self.folder / "using_gpus" if kind == "lessons" else self.folder
        folder.mkdir(exist_ok=True)
        (folder / "01_fake.cpp").write_text("// A fake.\n")
        (folder / "01_fake.py").write_text(f"print({twin!r})\nraise SystemExit({exit_code})\n")
        program = folder / "01_fake"
        program.write_text(f"#!{sys.executable}\nprint({cpp!r})\n")
        program.chmod(0o755)
        return subprocess.run([sys.executable, *script, "--bin", self.folder, f"--{kind}", self.folder, "--python",
                               sys.executable, *options], cwd=ROOT / "tests/apps", capture_output=True, text=True)

    def check(self, script, *options):
        self.assertEqual(self.compare(script, "loss 0.12", "loss 0.12", 0, *options).returncode, 0)
        other = self.compare(script, "loss 0.12", "loss 0.13", 0, *options)
        self.assertEqual(other.returncode, 1)
        self.assertIn("-loss 0.13\n+loss 0.12", other.stdout)
        self.assertNotIn("nobody serves", other.stdout)
        failed = self.compare(script, "loss 0.12", "loss 0.12", 3, *options)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("exit code 3", failed.stderr)

    def test_a_lesson_that_prints_something_else_fails(self):
        lessons = ["compare_lessons.py", "twins"]
        self.check(lessons)
        self.assertEqual(self.compare(lessons, "~ 3 ms", "~ 4 ms").returncode, 0)
        self.assertEqual(self.compare(lessons, "~ 3 ms", "~ 3 us").returncode, 1)

    def test_what_a_lesson_lacks_is_named_in_one_line(self):
        self.compare(["compare_lessons.py", "twins"], "1", "1")  # makes the files

        def refused(*options, how="twins"):
            done = subprocess.run([sys.executable, "compare_lessons.py", how, "--bin", self.folder, "--lessons",
                                   self.folder, "--python", sys.executable, *options], cwd=ROOT / "tests/apps",
                                  capture_output=True, text=True, env=dict(os.environ, PATH="/nowhere"))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            return done.stderr

        self.assertIn("no lesson has the name 99_none, 98_none; `ls ", refused("using_gpus/01_fake", "99_none", "98_none"))
        self.assertIn("cmake --build --preset default --target count-operations", refused("--counter", "/none.so"))
        self.assertIn("there is no /none/python; `cmake --preset default`", refused("--python", "/none/python"))
        self.assertIn("--target sconce-simgpu` makes it", refused("--simgpu", "/none", "--gpus", "1", how="gpu"))
        self.assertIn("counts are known with up to 2 GPUs", refused(
            "--counter", __file__, "--simgpu", __file__, "--gpus", "3", how="gpu"))
        several = "// A fake.\n// Processes: 2\n"
        folder = self.folder / "using_gpus"
        (folder / "01_fake.cpp").write_text(several)
        if not (pathlib.Path(sys.executable).parent / "torchrun").exists():
            self.assertIn("01_fake needs torchrun, which is", refused())
        (folder / "01_fake").unlink()
        self.assertIn("01_fake: there is no ", refused())
        self.assertIn("`cmake --build --preset default --target lessons` makes it", refused())
        (folder / "01_fake.py").unlink()
        self.assertIn("01_fake.py; `git checkout -- ", refused())

    def test_an_example_that_prints_something_else_fails(self):
        self.check(["compare_examples.py"])
        self.assertEqual(self.compare(["compare_examples.py"], "~ 3 ms", "~ 4 ms").returncode, 1)

    def test_a_twin_that_prints_something_else_in_the_server_of_python_fails(self):
        server = self.folder / "server"
        subprocess.run([sys.executable, ROOT / "tests/support/python_server.py", "serve", server, "json"],
                       check=True, env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
        self.check(["compare_examples.py"], "--server", server)

    def test_sides_of_a_benchmark_with_other_numbers_are_not_timed(self):
        self.assertFalse(bench.different([[1.0, 2.0], [1.0, 2.0 + 1e-9]], 1e-6))
        self.assertTrue(bench.different([[1.0], [1.0], [1.1]], 1e-6))
        self.assertTrue(bench.different([[1.0], [1.0, 2.0]], 1e-6))
        self.assertTrue(bench.different([[float("nan")], [float("nan")]], 1e-6))

    def test_figures_are_medians_of_pairs_with_their_intervals(self):
        self.assertEqual(times.interval(list(range(15, 0, -1))), (4, 12))
        made = times.ratio([2, 6, 40], [1, 2, 10])
        self.assertEqual((made["median"], made["interval"]), (3, (2, 4)))


if __name__ == "__main__":
    unittest.main()
