#!/usr/bin/env python3
"""Tests bench.py without timing anything: the arguments that it rejects, its tables, and the implementations of each
workload."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
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
import sides  # noqa: E402
import tables  # noqa: E402
import times  # noqa: E402
from workloads import QUESTIONS, STEP_COMPILERS, WORKLOADS, Workload  # noqa: E402


def functions_of_python(file):
    return {item.name for item in ast.parse((BENCH / file).read_text()).body if isinstance(item, ast.FunctionDef)}


def names_of_cpp(file):
    """Returns the names in the table of workloads at the end of the file."""
    path = BENCH / f"{file}.cpp"
    return set(re.findall(r'\{"(\w+)", ', path.read_text().rpartition(f"Workloads {file}()")[2])) if path.exists() else {}


def result(workload, **ratios):
    return {"name": workload.name, "title": workload.title, "size": workload.size, "unit": "seconds",
            "values": {"sconce": [1e-3] * 3} | {side: [1e-3 * ratio for ratio in of_side] for side, of_side in ratios.items()}}


@contextlib.contextmanager
def with_torch():
    """Lets the scripts find a torch package even if the Python that runs this test has none."""
    with unittest.mock.patch.object(times, "version", lambda _: "2.15.0"), \
            unittest.mock.patch.object(bench, "find_spec", lambda name: name == "torch"):
        yield


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
        beside = "bench: expected no program, workloads, or --json with --from, got "
        self.assertEqual(self.refused("--from", times, "--json", "other.json"), beside + "--json\n")
        self.assertEqual(self.refused("--from", times, "ops.add"), beside + "ops.add\n")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "times.json"
            self.assertEqual(self.refused("--from", file), f"bench: --from: {file}: No such file or directory\n")
            self.assertEqual(self.refused("--from", folder), f"bench: --from: {folder}: Is a directory\n")
            for text in ("", "{}", "[]", '{"machine": {"cores": 2}, "results": [{"name": "no.such", "size": 1}]}'):
                file.write_text(text)
                self.assertEqual(self.refused("--from", file),
                                 f"bench: --from: {file}: expected a file made by --json, got another\n")

    def test_all_needs_a_file_and_no_names(self):
        expected = "bench: expected --all with --json FILE and no names, got "
        self.assertEqual(self.refused("--all", sys.executable), expected + "no --json\n")
        self.assertEqual(self.refused("--all", "--json", "times.json", sys.executable, "ops.add"), expected + "['ops.add']\n")

    def test_compilers_are_asked_for_by_name(self):
        for arguments, compilers in (([], []), (["--with", "jax"], ["jax"]), (["--all", "--json", "t.json"], ["compile", "jax"])):
            with with_torch():
                self.assertEqual(bench.parse([*arguments, sys.executable]).compilers, compilers)

    @unittest.skipIf(importlib.util.find_spec("torch"), "this Python has torch")
    def test_a_python_without_torch_is_named(self):
        self.assertEqual(self.refused(sys.executable), f"bench: expected a Python with torch, got {sys.executable}\n")


class Sides(unittest.TestCase):
    def test_each_process_gets_the_number_of_threads(self):
        prints = [sys.executable, "-c", "import os; print([float(os.environ['OMP_NUM_THREADS'])])"]
        with unittest.mock.patch.object(sides.Side, "threads", 2):
            side = sides.Side("side", prints)
        side.close()
        self.assertEqual(side.check, [2])

    def test_a_side_that_is_not_available_is_left_out(self):
        for prints in ("exit(3)", "print([1]); input(); exit(3)"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                side = sides.started(Workload("steps.sgd", "step", {}), "compiled", [sys.executable, "-c", prints], [])
            self.assertIsNone(side)
            self.assertEqual(printed.getvalue(), "step: compiled is not available\n")
        for name, code in (("compiled", 1), ("sconce", 3)):
            with self.assertRaises(SystemExit) as ended:
                sides.started(Workload("steps.sgd", "step", {}), name, [sys.executable, "-c", f"exit({code})"], [])
            self.assertEqual(str(ended.exception), f"bench: {name} exited with code {code}")

    def test_each_side_of_a_workload_is_written(self):
        for workload in WORKLOADS:
            with self.subTest(workload.title):
                if workload.measure == "rate":  # the rate of an example
                    examples = {ROOT / "apps/examples" / f"{workload.name.partition('.')[2]}.{kind}" for kind in ("cpp", "py")}
                    self.assertEqual([file for file in examples if not file.exists()], [])
                    continue
                named = [workload.twin, workload.libtorch, workload.limit,
                         *(f"{workload.twin}_{form}" for form in workload.forms)]
                for name in filter(None, named):
                    file, _, function = name.partition(".")
                    self.assertIn(function, names_of_cpp(file))
                file, _, function = workload.twin.partition(".")
                if {"default", "best"} & set(workload.floors):
                    self.assertIn(function, functions_of_python(f"{file}.py"))
                if "jax_step" in workload.compilers:
                    self.assertIn(f"{file}_{function}", functions_of_python("jax_steps.py"))
                self.assertLessEqual(set(workload.compilers), set(STEP_COMPILERS))
                self.assertIn(workload.question, QUESTIONS)

    def test_names_and_titles_are_given_once(self):
        for key in (lambda of: (of.name, of.size), lambda of: of.title):
            keys = [key(workload) for workload in WORKLOADS]
            self.assertEqual(len(keys), len(set(keys)))

    def test_each_captured_or_compiled_form_is_measured(self):
        measured = {f"{workload.twin}_{form}" for workload in WORKLOADS for form in workload.forms}
        files = {workload.name.partition(".")[0] for workload in WORKLOADS}
        written = {f"{file}.{name}" for file in files for name in names_of_cpp(file)
                   if name.endswith(("_captured", "_compiled"))}
        self.assertGreater(len(written), 20)
        self.assertEqual(written, measured)

    def test_all_forms_of_a_step_and_all_its_compilers_take_turns(self):
        workload = Workload("steps.sgd", "", {"best": None}, forms=("captured", "compiled"), compilers=("compile_step",),
                            size=4)
        made = sides.commands(workload, "program", ["compile"])
        self.assertEqual(list(made), ["sconce", "captured", "compiled", "best", "compile_step"])
        self.assertEqual([made[form][1] for form in times.FORMS], ["steps.sgd", "steps.sgd_captured", "steps.sgd_compiled"])
        self.assertEqual(made["best"][2:], ["steps.sgd", "best", "4"])
        self.assertEqual(list(sides.commands(workload, "program")), ["sconce", "captured", "compiled", "best"])

    def test_only_the_file_for_jax_imports_it(self):
        importing = [path.name for path in BENCH.glob("*.py") if re.search(r"^\s*(import|from) jax\b", path.read_text(), re.M)]
        self.assertEqual(importing, ["jax_steps.py"])


class TimesFile(unittest.TestCase):
    """A run of sconce-bench in which no workload is measured."""

    def run_bench(self, *arguments):
        program = shutil.which("true")
        measured = []

        def run_workload(workload, *_):
            measured.append(workload.title)
            return result(workload, default=(1, 1, 1)) | {"load": 0.1}

        with with_torch(), unittest.mock.patch.object(bench, "run_workload", run_workload), \
                unittest.mock.patch.object(sys, "argv", ["bench.py", program, *map(str, arguments)]), \
                contextlib.redirect_stdout(io.StringIO()):
            bench.main()
        return measured

    def test_an_interrupted_run_continues_with_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "times.json"
            self.assertEqual(self.run_bench("ops.mul", "--json", file), ["mul, 4 x 4"])
            self.assertEqual(self.run_bench("ops.add", "ops.mul", "--json", file), ["add, 4 x 4"])
            self.assertEqual([made["name"] for made in times.read(file)["results"]], ["ops.add", "ops.mul"])
            rest = self.run_bench("--all", "--json", file)
            self.assertNotIn("add, 4 x 4", rest)
            self.assertEqual(self.run_bench("--all", "--json", file), [])

    def test_times_of_another_machine_or_other_code_are_not_continued(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "times.json"
            self.run_bench("ops.mul", "--json", file)
            before = file.read_text()
            for key in ("cpu", "code", "threads", "torch"):
                found = json.loads(before)
                found["machine"][key] = "another"
                file.write_text(json.dumps(found))
                with self.assertRaises(SystemExit) as refused, contextlib.redirect_stderr(io.StringIO()) as error:
                    self.run_bench("ops.add", "--json", file)
                self.assertEqual(refused.exception.code, 2)
                self.assertRegex(error.getvalue(), rf"expected times with the {key} .*, got another: specify a new file\n$")
                self.assertEqual(json.loads(file.read_text()), found)


class Ratios(unittest.TestCase):
    def test_the_fastest_of_the_measured_sides_has_the_smallest_ratio(self):
        ratios = {"default": {"median": 2.0}, "best": {"median": 1.5}, "jax_step": {"median": 0.5}}
        self.assertEqual(times.fastest(ratios, ("default", "best", "compile_step")), {"median": 1.5})
        self.assertIsNone(times.fastest(ratios, ("compile_step",)))

    def test_other_sides_are_compared_with_the_fastest_form(self):
        made = {"values": {"sconce": [4, 4, 4], "captured": [1, 1, 1], "compiled": [2, 2, 2], "best": [8, 6, 7], "limit": [1, 1, 1]}}
        self.assertEqual(times.fastest_form(made), "captured")
        self.assertEqual(times.ratios(made)["best"], {"median": 7, "interval": (6, 8)})
        self.assertEqual(times.ratios(made, "sconce")["best"]["median"], 1.75)
        self.assertEqual(list(times.ratios(made)), ["best", "limit"])


class Machine(unittest.TestCase):
    def test_what_it_lacks_for_a_workload_is_named(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.object(times, "NVIDIA_DRIVER", pathlib.Path(folder)):
            for expected, more in (("", {}), ("", {"data": folder}), ("", {"needs": "json"}), ("a GPU", {"gpu": True}),
                                   ("no_such_package", {"needs": "no_such_package"}), ("/no/such", {"data": "/no/such"})):
                self.assertEqual(bench.missing_for(Workload("steps.sgd", "", {}, **more)), expected)

    def test_it_names_the_gpus_and_their_driver(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = pathlib.Path(folder)
            with unittest.mock.patch.object(times, "NVIDIA_DRIVER", driver):
                self.assertEqual(times.gpus(), {})
                (driver / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                                                "Release Build\nGCC version:  gcc version 13.3.0\n")
                for bus in ("1a", "2b"):
                    (driver / "gpus" / bus).mkdir(parents=True)
                    (driver / "gpus" / bus / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: \t\t 16\n")
                self.assertEqual(times.gpus(), {"gpus": 2 * ["NVIDIA H100 80GB HBM3"], "driver": "580.159.04"})


class Tables(unittest.TestCase):
    def test_a_cpu_is_named_without_trademarks_and_frequency(self):
        for cpu, name in (("Intel(R) Xeon(R) Processor", "Intel Xeon"), ("AMD EPYC", "AMD EPYC"),
                          ("Intel(R) Core(TM) i7-9700 CPU @ 3.00GHz", "Intel Core i7-9700 CPU")):
            self.assertEqual(tables.cpu_name({"cpu": cpu}), name)

    def test_rows_that_sconce_loses_stand_first(self):
        workload = Workload("steps.sgd", "step", {"default": None, "best": None})
        made = result(workload, default=(0.8, 0.9, 0.99), best=(0.5, 0.9, 1.1), limit=(0.7, 0.7, 0.7), libtorch=(0.2, 0.3, 0.4))
        self.assertEqual([line[1] for line in tables.slower([(workload, made)])], ["libtorch", "default"])
        text = tables.tables([(workload, made)])
        self.assertTrue(text.startswith("| workload | against | sconce | ratio | 95% interval |\n| --- |"))
        self.assertLess(text.index("| step | libtorch |"), text.index("| step | default |"))

    def test_a_question_compares_the_fastest_form_with_each_side(self):
        workload = Workload("steps.sgd", "step", {}, "small")
        made = result(workload, best=(2, 2, 2), jax_step=(0.5, 0.5, 0.5), limit=(0.1, 0.1, 0.1))
        made["values"]["captured"] = [5e-4] * 3
        other = Workload("files.load", "load", {}, "files")
        header, lines = tables.compared([(workload, made), (other, result(other, default=(1, 1, 1)))], "small")
        self.assertEqual(header, ["workload", "sconce", "best", "jax_step"])
        self.assertEqual(lines, [["step", "500 µs captured", "4.00", "1.00"]])

    def test_the_memory_of_each_side_on_a_gpu_is_listed(self):
        made = {"title": "step", "gpu_memory": {"sconce": 2_000_000, "default": 3_000_000}}
        self.assertEqual(list(tables.gpu_memories([(None, made)])), [["step", "sconce", "2 MB"], ["step", "default", "3 MB"]])
        self.assertEqual(list(tables.gpu_memories([(None, result(Workload("steps.sgd", "step", {})))])), [])

    def test_first_calls_are_apart(self):
        made = result(Workload("steps.sgd", "step", {})) | {"first": {"jax_step": 1.5, "sconce": 0.25}}
        other = result(Workload("epochs.mlp", "epoch", {})) | {"first": {"best": 2, "captured": 0.5, "sconce": 1}}
        unmeasured = result(Workload("files.load", "load", {}))
        header, lines = tables.firsts([(None, of_workload) for of_workload in (made, unmeasured, other)])
        self.assertEqual(header, ["workload", "eager", "captured", "best", "jax_step"])
        self.assertEqual(lines, [["step", "250 ms", "", "", "1.5 s"], ["epoch", "1 s", "500 ms", "2 s", ""]])
        self.assertEqual(tables.firsts([(None, unmeasured)])[1], [])

    def test_the_tables_of_a_file_are_written_again(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            made = pathlib.Path(folder) / "tables.md"
            arguments = ["bench.py", "--from", str(ROOT / "docs/speed.json"), "--table", str(made)]
            with unittest.mock.patch.object(sys, "argv", arguments):
                bench.main()
            page = (ROOT / "docs/speed.md").read_text()
            for table in made.read_text().split("\n\n"):
                self.assertIn(table.strip(), page)


if __name__ == "__main__":
    unittest.main()
