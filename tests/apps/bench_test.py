#!/usr/bin/env python3
"""Tests bench.py without timing anything: what it refuses, its tables, and that each workload has its sides."""
import ast
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "apps/bench"
sys.dont_write_bytecode = True
sys.path[:0] = [str(BENCH)]
import bench  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402


def functions_of_python(file):
    return {item.name for item in ast.parse((BENCH / file).read_text()).body if isinstance(item, ast.FunctionDef)}


def names_of_cpp(file):
    """The names in the table of workloads, which ends the file."""
    path = BENCH / f"{file}.cpp"
    return set(re.findall(r'\{"(\w+)", ', path.read_text().rpartition(f"Workloads {file}()")[2])) if path.exists() else {}


def result(workload, **ratios):
    return {"name": workload.name, "title": workload.title, "size": workload.size, "unit": "seconds",
            "values": {"sconce": [1e-3]},
            "ratios": {side: {"median": middle, "interval": [low, high]} for side, (low, middle, high) in ratios.items()}}


class Refusals(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([sys.executable, BENCH / "bench.py", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_unknown_arguments_end_the_run_in_one_line(self):
        self.assertEqual(self.refused("--with", "jax,tpu,abc", sys.executable),
                         "bench: expected --with compile,jax or one of them, got abc, tpu\n")
        self.assertIn("expected workloads of", self.refused(sys.executable, "ops.none"))
        self.assertIn("expected a program, got", self.refused())
        self.assertIn("unrecognized", self.refused("--wth", "jax"))
        self.assertEqual(self.refused("--threads", "0", sys.executable),
                         f"bench: expected 1 to {os.cpu_count()} threads, got 0\n")

    def test_a_folder_is_no_program(self):
        self.assertEqual(self.refused("/"), "bench: expected a program, got /\n")

    def test_a_file_of_times_is_read_alone(self):
        times = str(ROOT / "docs/speed.json")
        beside = "bench: expected no program, workloads or --json beside --from, got "
        self.assertEqual(self.refused("--from", times, "--json", "other.json"), beside + "--json\n")
        self.assertEqual(self.refused("--from", times, "ops.add"), beside + "ops.add\n")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "times.json"
            self.assertEqual(self.refused("--from", file), f"bench: --from: {file}: No such file or directory\n")
            self.assertEqual(self.refused("--from", folder), f"bench: --from: {folder}: Is a directory\n")
            for text in ("", "{}", "[]", '{"results": [{"name": "no.such", "size": 1}]}'):
                file.write_text(text)
                self.assertEqual(self.refused("--from", file),
                                 f"bench: --from: {file}: expected a file made by --json, got another\n")

    def test_compilers_are_asked_for_by_name(self):
        self.assertEqual(bench.parse([sys.executable]).compilers, [])
        self.assertEqual(bench.parse(["--with", "jax", sys.executable]).compilers, ["jax"])


class Sides(unittest.TestCase):
    def test_each_process_gets_the_number_of_threads(self):
        prints = [sys.executable, "-c", "import os; print([float(os.environ['OMP_NUM_THREADS'])])"]
        with unittest.mock.patch.object(bench.Side, "threads", 2):
            side = bench.Side("side", prints)
        side.close()
        self.assertEqual(side.check, [2])

    def test_each_side_of_a_workload_is_written(self):
        for workload in WORKLOADS:
            with self.subTest(workload.title):
                named = [workload.name.partition(":")[0], workload.libtorch, workload.limit]
                for name in filter(None, [*named, workload.twin]):
                    file, _, function = name.partition(".")
                    self.assertIn(function, names_of_cpp(file))
                file, _, function = workload.twin.partition(".")
                if {"default", "best"} & set(workload.floors):
                    self.assertIn(function, functions_of_python(f"{file}.py"))
                if "jax" in workload.compilers:
                    self.assertIn(f"{file}_{function}", functions_of_python("jax_steps.py"))
                self.assertLessEqual(set(workload.compilers), set(bench.COMPILED))

    def test_names_and_titles_are_given_once(self):
        for key in (lambda of: (of.name, of.size), lambda of: of.title):
            keys = [key(workload) for workload in WORKLOADS]
            self.assertEqual(len(keys), len(set(keys)))

    def test_what_has_a_captured_form_is_measured_captured(self):
        measured = {workload.name for workload in WORKLOADS}
        files = {workload.name.partition(".")[0] for workload in WORKLOADS}
        captured = {f"{file}.{name}" for file in files for name in names_of_cpp(file) if name.endswith("_captured")}
        self.assertGreater(len(captured), 5)
        self.assertLessEqual(captured, measured)

    def test_a_captured_step_is_compared_with_the_eager_one_and_with_the_same_python(self):
        workload = Workload("steps.sgd_captured", "", {"best": None}, size=4)
        made = bench.commands(workload, "program")
        self.assertEqual(list(made), ["sconce", "eager", "best"])
        self.assertEqual([made["sconce"][1], made["eager"][1]], ["steps.sgd_captured", "steps.sgd"])
        self.assertEqual(made["best"][2:], ["steps.sgd", "best", "4"])

    def test_only_the_file_for_jax_imports_it(self):
        importing = [path.name for path in BENCH.glob("*.py") if re.search(r"^\s*(import|from) jax\b", path.read_text(), re.M)]
        self.assertEqual(importing, ["jax_steps.py"])


class Machine(unittest.TestCase):
    def test_what_it_lacks_for_a_workload_is_named(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(bench, "NVIDIA_DRIVER", pathlib.Path(folder)):
            for expected, more in (("", {}), ("", {"data": folder}), ("", {"needs": "json"}), ("a GPU", {"gpu": True}),
                                   ("no_such_package", {"needs": "no_such_package"}), ("/no/such", {"data": "/no/such"})):
                self.assertEqual(bench.missing_for(Workload("steps.sgd", "", {}, **more)), expected)

    def test_it_names_the_gpus_and_their_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = pathlib.Path(folder)
            with unittest.mock.patch.object(bench, "NVIDIA_DRIVER", driver):
                self.assertEqual(bench.gpus(), {})
                (driver / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                                                "Release Build\nGCC version:  gcc version 13.3.0\n")
                for bus in ("1a", "2b"):
                    (driver / "gpus" / bus).mkdir(parents=True)
                    (driver / "gpus" / bus / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: \t\t 16\n")
                self.assertEqual(bench.gpus(), {"gpus": 2 * ["NVIDIA H100 80GB HBM3"], "driver": "580.159.04"})


class Tables(unittest.TestCase):
    def test_rows_that_sconce_loses_stand_first(self):
        workload = Workload("steps.sgd", "step", {"default": None, "best": None})
        made = result(workload, default=(0.8, 0.9, 0.99), best=(0.5, 0.9, 1.1), limit=(0.7, 0.7, 0.7), libtorch=(0.2, 0.3, 0.4))
        lines = list(bench.rows(workload, made))
        self.assertEqual([line[1] for line in bench.slower([(workload, made)])], ["libtorch", "default"])
        text = bench.tables(lines, [(workload, made)])
        self.assertTrue(text.startswith("| workload | against | sconce | ratio | 95 % interval |\n| --- |"))
        self.assertLess(text.index("| step | libtorch |"), text.index("| step | default |"))

    def test_the_memory_of_each_side_on_a_gpu_is_listed(self):
        made = {"title": "step", "gpu_memory": {"sconce": 2_000_000, "default": 3_000_000}}
        self.assertEqual(list(bench.gpu_memories([(None, made)])), [["step", "sconce", "2 MB"], ["step", "default", "3 MB"]])
        self.assertEqual(list(bench.gpu_memories([(None, result(Workload("steps.sgd", "step", {})))])), [])

    def test_first_calls_are_apart(self):
        made = result(Workload("steps.sgd", "step", {})) | {"first": {"jax_step": 1.5}}
        self.assertEqual(list(bench.firsts([(None, made)])), [["step", "jax_step", "1.5 s"]])
        self.assertEqual(list(bench.firsts([(None, result(Workload("steps.sgd", "step", {})))])), [])

    def check_page(self, name, file):
        page = (ROOT / "docs" / name).read_text()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            made = pathlib.Path(folder) / "tables.md"
            arguments = ["bench.py", "--from", str(ROOT / "docs" / file), "--table", str(made)]
            with unittest.mock.patch.object(sys, "argv", arguments):
                bench.main()
            for table in made.read_text().split("\n\n"):
                self.assertTrue(table.strip() in page, f"{name} lacks this table:\n{table}")

    def test_the_pages_have_the_figures_of_the_files(self):
        self.check_page("speed.md", "speed.json")
        self.check_page("speed_elsewhere.md", "speed_epyc.json")
        self.check_page("speed_elsewhere.md", "speed_threads.json")
        self.check_page("on_a_gpu.md", "speed_gpu.json")
        self.assertGreater(len(json.loads((ROOT / "docs/speed.json").read_text())["results"]), 40)


if __name__ == "__main__":
    unittest.main()
