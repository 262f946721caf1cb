#!/usr/bin/env python3
"""Tests the command sconce-export: its files, which are run at several batch sizes, and its messages.

    sconce_export_test.py [--command FILE] [unittest's arguments]

Run with a Python that has PyTorch and, on PYTHONPATH, ONNX and ONNX Runtime. FILE is the built command, which some tests
need.
"""
import contextlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "apps/export"), str(ROOT / "tests/program")]
import torch  # noqa: E402
import torch._inductor.config  # noqa: E402

import programs  # noqa: E402
from program_writer import ProgramWriter  # noqa: E402
from sconce_cpp.command import main  # noqa: E402

COMMAND = None


def setUpModule():
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise RuntimeError(f"no {package} in PYTHONPATH: see what the configure step printed about ONNX")
    # Settings that make the compiler faster: no precompiled header for a single network, no programs that test the CPU's
    # instructions, and no optimization and no line numbers for the code around the kernels. LibTorch 2.11 lacks some of
    # them.
    package = torch._inductor.config.aot_inductor
    for config, name, value in ((torch._inductor.config.cpp, "vec_isa_ok", True), (package, "precompile_headers", False),
                                (package, "compile_wrapper_opt_level", "O0"), (package, "enable_line_tables", False)):
        if hasattr(config, name):
            setattr(config, name, value)
    cache = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(cache.cleanup)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache.name  # without files of an earlier test, and leaving none


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "net.safetensors"

    def run_command(self, *arguments):
        """Runs the command in this process. Returns the exit code, the standard output, and the standard error."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]
            stack.callback(os.chdir, os.getcwd())
            os.chdir(self.folder)
            for descriptor, file in zip((1, 2), files):  # not sys.stdout and sys.stderr, because compilers write too
                stack.callback(os.dup2, os.dup(descriptor), descriptor)
                os.dup2(file.fileno(), descriptor)
            try:
                code = main(list(arguments))
            except SystemExit as end:
                code = end.code
            texts = []
            for file in files:
                file.seek(0)
                texts.append(file.read())
            return code, *texts

    def check_fails(self, code, error, *arguments):
        """Checks that standard error contains one line and that no file was written."""
        before = sorted(os.listdir(self.folder))
        found, out, err = self.run_command(*arguments)
        self.assertEqual((found, out), (code, ""), err)
        self.assertRegex(err, rf"\Asconce-export: {error}\n\Z")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def check_written(self, *arguments):
        """Runs the command. Returns its output."""
        code, out, err = self.run_command("net.safetensors", *arguments)
        self.assertEqual((code, err), (0, ""))
        return out


class Onnx(TestCase):
    def check_program(self, make, sizes=(1, 3, 17)):
        """Writes a program as ONNX and compares it with torch for these batch sizes."""
        import onnxruntime
        writer, expected = make()
        writer.save(self.program)
        self.check_written("--onnx", "net.onnx")
        session = onnxruntime.InferenceSession(str(self.folder / "net.onnx"))
        names = [spec["name"] for spec in writer.program["inputs"]]
        for rows in sizes:
            inputs = programs.random_inputs(writer, batch=rows, length=rows + 1)
            outputs = session.run(None, {name: tensor.numpy() for name, tensor in zip(names, inputs)})
            right = expected(*inputs)
            for output, tensor in zip(outputs, (right,) if torch.is_tensor(right) else right, strict=True):
                with self.subTest(make.__name__, rows=rows):
                    torch.testing.assert_close(torch.from_numpy(output), tensor, rtol=0, atol=1e-5)
        return session

    def test_onnx_has_the_program_s_names_and_dynamic_sizes(self):
        session = self.check_program(programs.folded_sizes)
        self.assertEqual([(value.name, value.shape) for value in session.get_inputs()],
                         [("x", ["batch", "length", 4]), ("y", ["length", 4])])
        self.assertEqual([(value.name, value.shape) for value in session.get_outputs()],
                         [("output", ["batch", "length", 4])])

    def test_onnx_runtime_computes_what_torch_computes(self):
        for make in (programs.mlp, programs.tied, programs.numbers, programs.lists, programs.in_place, programs.types,
                     programs.passed_through):
            self.check_program(make)
        self.check_program(programs.constants, sizes=(2,))

    def test_an_operator_that_onnx_lacks_is_named_with_the_alternatives(self):
        writer = ProgramWriter()
        x = writer.input("x", [4, 4])
        q, _ = writer.call("linalg_qr", "", 2, A=x)
        writer.output("output", q, [4, 4])
        writer.save(self.program)
        self.check_fails(1, "net.onnx: ONNX has no operator for aten::linalg_qr: write a package with --package, or "
                            r"run the program in C\+\+ with sconce::program::Program",
                         "net.safetensors", "--onnx", "net.onnx")

    def test_without_onnxscript_the_error_has_the_command_that_installs_it(self):
        programs.mlp_with_example()[0].save(self.program)
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "apps/export"))
        for check, packages in (([], ["onnx", "onnxscript"]), (["--check"], ["onnx", "onnxscript", "onnxruntime"])):
            ran = subprocess.run([sys.executable, "-m", "sconce_cpp", "net.safetensors", "--onnx", "net.onnx", *check],
                                 cwd=self.folder, env=environment, capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))
            self.assertEqual(ran.stderr, f"sconce-export: --onnx needs {' and '.join(packages)}. To install: "
                                         f"{sys.executable} -m pip install {' '.join(packages)}\n")
        self.assertEqual(os.listdir(self.folder), ["net.safetensors"])


class Check(TestCase):
    def test_each_file_is_run_on_the_program_s_example(self):
        programs.mlp_with_example()[0].save(self.program)
        lines = self.check_written("--onnx", "net.onnx", "--pt2", "net.pt2", "--check").splitlines()
        self.assertEqual(lines[:2], ["wrote net.pt2", "wrote net.onnx"])
        for line, name in zip(lines[2:], ["net.safetensors", "net.pt2", "net.onnx"], strict=True):
            self.assertRegex(line, rf"^{name}: largest difference (0|\d(\.\d)?e-0[78]), at most 1e-05 expected$")
        self.assertEqual(sorted(os.listdir(self.folder)), ["net.onnx", "net.pt2", "net.safetensors"])

    def test_a_difference_above_the_tolerance_fails(self):
        writer, _ = programs.mlp_with_example()
        writer.tensors["example.outputs.logits"][0, 0] += 0.5
        writer.save(self.program)
        code, out, err = self.run_command("net.safetensors", "--pt2", "net.pt2", "--check")
        self.assertEqual((code, err), (1, ""))
        self.assertRegex(out, r"net.pt2: largest difference 0\.0\d+, at most 1e-05 expected\n\Z")

    def test_outputs_of_16_bits_have_a_larger_tolerance(self):
        for dtype, tolerance in ((torch.bfloat16, "0.02"), (torch.float16, "0.002")):
            programs.half_precision(dtype)[0].save(self.program)
            out = self.check_written("--pt2", "net.pt2", "--check")
            self.assertRegex(out, rf"net.pt2: largest difference 0, at most {tolerance} expected\n")

    def test_onnx_runtime_runs_float16_and_its_refusal_of_bfloat16_is_quoted(self):
        programs.half_precision(torch.float16)[0].save(self.program)
        out = self.check_written("--onnx", "net.onnx", "--check")
        self.assertRegex(out, r"net.onnx: largest difference 0(\.00\d+)?, at most 0.002 expected\n")
        programs.half_precision(torch.bfloat16)[0].save(self.program)
        code, _, err = self.run_command("net.safetensors", "--onnx", "net.onnx", "--check")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"\Asconce-export: net.onnx: ONNX Runtime cannot run it: .*NOT_IMPLEMENTED.*\n\Z")

    def test_non_finite_outputs_must_be_equal(self):
        writer, expected = programs.numbers()
        x = torch.ones(3, 4)
        first, second = expected(x)
        writer.example({"x": x}, {"output": first, "finite": second})
        writer.save(self.program)
        self.assertIn("net.safetensors: largest difference 0, at most", self.check_written("--check"))
        writer.tensors["example.outputs.output"] = -first
        writer.save(self.program)
        self.assertEqual(self.run_command("net.safetensors", "--check")[:2],
                         (1, "net.safetensors: largest difference inf, at most 1e-05 expected\n"))

    def test_without_an_example_the_error_says_how_to_record_one(self):
        programs.mlp()[0].save(self.program)
        self.check_fails(1, "net.safetensors: --check needs an example: record the program with .save_example = true",
                         "net.safetensors", "--pt2", "net.pt2", "--check")


class Package(TestCase):
    def test_a_package_is_compiled_and_has_the_metadata_that_the_examples_check(self):
        writer, expected = programs.mlp_with_example()
        writer.save(self.program)
        out = self.check_written("--package", "net.pt2", "--check")
        self.assertRegex(out, r"net.pt2: largest difference (0|\d(\.\d)?e-0[78]), at most 1e-05 expected\n\Z")
        package = torch._inductor.aoti_load_package(str(self.folder / "net.pt2"))
        for rows in (1, 3, 17):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(package(x), expected(x), rtol=0, atol=1e-5)
        metadata = package.get_metadata()
        self.assertEqual(metadata["torch"], torch.__version__.split("+")[0])
        self.assertEqual(metadata["cpu"], torch.backends.cpu.get_cpu_capability())
        self.assertEqual(metadata["rows"], "torch.float32 torch.Size([4])")

    def test_without_a_compiler_the_error_has_the_command_that_installs_one(self):
        programs.mlp()[0].save(self.program)
        with unittest.mock.patch.dict(os.environ, {"CXX": "no-compiler"}):
            self.check_fails(1, r"--package needs a C\+\+ compiler, and there is no 'no-compiler'. To install: apt "
                                r"install g\+\+", "net.safetensors", "--package", "net.pt2")


class EachPackage(TestCase):
    """Compiles a package for each program, which takes minutes."""

    def test_packages_compute_what_torch_computes(self):
        for make in (programs.tied, programs.numbers, programs.lists, programs.folded_sizes, programs.types,
                     programs.passed_through):
            writer, expected = make()
            writer.save(self.program)
            self.check_written("--package", "net.pt2")
            package = torch._inductor.aoti_load_package(str(self.folder / "net.pt2"))
            for rows in (1, 3, 17):
                inputs = programs.random_inputs(writer, batch=rows, length=rows + 1)
                outputs, right = ([value] if torch.is_tensor(value) else value
                                  for value in (package(*inputs), expected(*inputs)))
                for output, tensor in zip(outputs, right, strict=True):
                    with self.subTest(make.__name__, rows=rows):
                        torch.testing.assert_close(output, tensor, rtol=0, atol=1e-5)


class CommandLine(TestCase):
    def test_a_wrong_command_line_exits_with_code_2_and_one_line(self):
        programs.mlp()[0].save(self.program)
        help_text = r" \(--help lists the flags\)"
        for error, *arguments in (
                ("the following arguments are required: PROGRAM",),
                ("unrecognized arguments: --onx", "net.safetensors", "--onx", "--check"),
                ("expected --onnx, --pt2, --package, or --check", "net.safetensors"),
                ("argument --onnx: expected one argument", "net.safetensors", "--onnx"),
                ("expected different output files", "net.safetensors", "--onnx", "./net.safetensors"),
                ("expected different output files", "net.safetensors", "--pt2", "net.pt2", "--package", "net.pt2"),
                ("--pt2: expected a name that ends with .pt2, got 'net.pt'", "net.safetensors", "--pt2", "net.pt"),
                ("--package: expected a name that ends with .pt2, got 'net'", "net.safetensors", "--package", "net")):
            with self.subTest(error):
                self.check_fails(2, error + help_text, *arguments)

    def test_files_that_cannot_be_read_or_written_are_named_before_the_work(self):
        self.check_fails(1, "net.safetensors: No such file or directory", "net.safetensors", "--pt2", "net.pt2")
        self.program.write_text("text")
        self.check_fails(1, "net.safetensors: expected a safetensors file of at least 8 bytes, found 4",
                         "net.safetensors", "--pt2", "net.pt2")
        programs.mlp()[0].save(self.program)
        (self.folder / "folder.pt2").mkdir()
        self.check_fails(1, "folder.pt2: expected a file, got a folder", "net.safetensors", "--pt2", "folder.pt2")
        self.check_fails(1, "none/net.pt2: expected an existing folder, got '.*/none'", "net.safetensors", "--pt2",
                         "none/net.pt2")

    def test_a_failure_leaves_an_earlier_file_as_it_was(self):
        writer = ProgramWriter()
        rows = writer.size("batch")
        x = writer.input("x", [rows, 2])
        writer.output("output", writer.call("view", self=x, size=[7]), [7])
        writer.save(self.program)
        (self.folder / "net.pt2").write_text("earlier")
        self.check_fails(1, r"net.safetensors: calls\[0\] aten::view: .+", "net.safetensors", "--pt2", "net.pt2")
        self.assertEqual((self.folder / "net.pt2").read_text(), "earlier")

    def test_a_link_to_a_file_is_followed(self):
        programs.mlp()[0].save(self.program)
        (self.folder / "link.pt2").symlink_to("net.pt2")
        self.assertEqual(self.check_written("--pt2", "link.pt2"), "wrote link.pt2\n")
        self.assertTrue((self.folder / "link.pt2").is_symlink())
        self.assertTrue((self.folder / "net.pt2").is_file())

    def test_the_built_command_runs_from_any_folder_and_loads_no_module_from_it(self):
        if COMMAND is None:
            self.fail("expected --command FILE")
        programs.mlp_with_example()[0].save(self.program)
        (self.folder / "json.py").write_text("raise SystemExit('loaded from the current folder')")
        ran = subprocess.run([COMMAND, "net.safetensors", "--check"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr),
                         (0, "net.safetensors: largest difference 0, at most 1e-05 expected\n", ""))
        ran = subprocess.run([COMMAND, "--help"], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("usage: sconce-export ", ran.stdout)
        with open("/dev/full", "w") as full:
            ran = subprocess.run([COMMAND, "net.safetensors", "--check"], cwd=self.folder, stdout=full,
                                 stderr=subprocess.PIPE, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (1, "sconce-export: cannot write to standard output\n"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--command"]:
        COMMAND = sys.argv[2]
        del sys.argv[1:3]
    unittest.main()
