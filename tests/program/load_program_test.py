#!/usr/bin/env python3
"""Tests sconce_cpp.load_program: programs of each kind, compared with the same network in torch, and rejected files.

Run with a Python that has PyTorch. The program files are written by program_writer.py.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "apps/export"), str(ROOT / "tests/program")]
import torch  # noqa: E402

import programs  # noqa: E402
from program_writer import ProgramWriter, bytes_of, crc32, save_tensors, size  # noqa: E402
from sconce_cpp import ProgramError, load_program  # noqa: E402


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "net.safetensors"

    def check_outputs(self, outputs, expected):
        outputs, expected = ([value] if torch.is_tensor(value) else value for value in (outputs, expected))
        for output, right in zip(outputs, expected, strict=True):
            torch.testing.assert_close(output, right, rtol=0, atol=1e-6, equal_nan=True)

    def check_program(self, make, sizes=(1, 3, 17)):
        """Compares a program with a torch function for these batch sizes. Returns the ExportedProgram."""
        writer, expected = make()
        program = load_program(writer.save(self.path))
        for rows in sizes:
            inputs = programs.random_inputs(writer, batch=rows, length=rows + 1)
            with self.subTest(make.__name__, rows=rows):
                self.check_outputs(program.module()(*[tensor.clone() for tensor in inputs]),
                                   expected(*[tensor.clone() for tensor in inputs]))
        return program


class Programs(TestCase):
    def test_a_network_keeps_its_names_and_has_a_dynamic_batch(self):
        program = self.check_program(programs.mlp)
        self.assertEqual(list(program.state_dict), ["body.0.weight", "body.0.bias", "head.weight"])
        self.assertIsInstance(program.state_dict["head.weight"], torch.nn.Parameter)
        self.assertEqual(program.graph_signature.user_inputs, ("x",))

    def test_a_dynamic_size_has_the_program_s_minimum_and_no_maximum(self):
        for smallest in (1, 2, 8):
            program = load_program(programs.mlp(smallest)[0].save(self.path))
            bounds, = program.range_constraints.values()
            self.assertEqual(bounds.lower, smallest)
            self.assertEqual(str(bounds.upper), "int_oo")

    def test_tied_weights_are_one_parameter_under_both_names(self):
        program = self.check_program(programs.tied)
        self.assertEqual(sorted(program.state_dict), ["embedding.weight", "head.weight"])
        self.assertEqual(*(tensor.data_ptr() for tensor in program.state_dict.values()))

    def test_a_python_number_in_place_of_a_tensor_leaves_the_type_as_it_is(self):
        program = self.check_program(programs.numbers)
        self.assertEqual(program.module()(torch.ones(2, 4))[1].dtype, torch.float32)

    def test_arguments_and_results_can_be_lists_of_tensors(self):
        self.check_program(programs.lists)

    def test_operators_in_place_write_to_views_and_inputs(self):
        program = self.check_program(programs.in_place)
        x = torch.full((3, 4), -1.0)
        program.module()(x)
        self.assertEqual(x.abs().sum(), 0)

    def test_sizes_can_be_sums_and_products_of_dynamic_sizes(self):
        self.check_program(programs.folded_sizes)

    def test_arguments_can_be_types_layouts_memory_formats_and_devices(self):
        self.check_program(programs.types)

    def test_constants_and_buffers_are_buffers(self):
        program = self.check_program(programs.constants, sizes=(2,))
        self.assertEqual(list(program.state_dict), ["constants.0", "bn.mean", "bn.var"])
        self.assertEqual(program.graph_signature.buffers, ("constants.0", "bn.mean", "bn.var"))

    def test_an_output_can_be_an_input_a_weight_or_another_output(self):
        self.check_program(programs.passed_through)

    def test_a_table_bounds_the_dynamic_size_that_indexes_it(self):
        program = self.check_program(programs.positions, sizes=(1, 3))
        self.assertIn("VR[1, 6]", str(program.range_constraints))

    def test_a_dynamic_size_can_need_to_be_large(self):
        self.check_program(programs.long_kernel, sizes=(40, 57))

    def test_inputs_and_sizes_can_have_any_name(self):
        for name in ("self", "torch", "device", "lambda", "input", "getattr", "N", "E", "S", "_x"):
            writer = ProgramWriter()
            rows = writer.size(name)
            x = writer.input(name, [rows, 2])
            writer.output("output", writer.call("add", "Scalar", self=x, other=1), [rows, 2])
            with self.subTest(name):
                program = load_program(writer.save(self.path))
                self.check_outputs(program.module()(torch.ones(1, 2)), torch.full((1, 2), 2.0))

    def test_a_program_without_inputs_returns_its_outputs(self):
        writer = ProgramWriter()
        ones = writer.call("ones", size=[2], device={"device": "cpu"}, pin_memory=False)
        writer.output("output", ones, [2])
        self.check_outputs(load_program(writer.save(self.path)).module()(), torch.ones(2))

    def test_loading_prints_nothing(self):
        """Loading prints nothing even if an operator rejects the first sizes that are tried, or all sizes."""
        writer = ProgramWriter()
        rows = writer.size("rows")
        x = writer.input("x", [rows, 3])
        writer.output("output", writer.call("mm", self=x, mat2=x), [rows, 3])
        writer.save(self.folder / "refused")
        for make in (programs.mlp, programs.positions):
            make()[0].save(self.folder / make.__name__)
        script = """if True:
            import sys
            sys.path.insert(0, sys.argv[1])
            import sconce_cpp
            for name in ("mlp", "positions", "refused"):
                try:
                    sconce_cpp.load_program(name)
                except sconce_cpp.ProgramError:
                    assert name == "refused"
        """
        ran = subprocess.run([sys.executable, "-c", script, str(ROOT / "apps/export")], cwd=self.folder,
                             capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_an_input_that_memory_cannot_hold_is_an_error_of_the_program(self):
        writer = ProgramWriter()
        writer.output("output", writer.input("x", [2**40, 2**20]), [2**40, 2**20])
        writer.save(self.path)
        with self.assertRaisesRegex(ProgramError, "net.safetensors: .*allocate memory|overflow"):
            load_program(self.path)

    def test_a_program_of_a_gpu_runs_on_the_device_that_the_caller_names(self):
        writer, expected = programs.types("cuda")
        writer.save(self.path)
        x = torch.randn(3, 2, 5, 5)
        self.check_outputs(load_program(self.path, device="cpu").module()(x), expected(x))
        if torch.cuda.is_available():
            on_gpu = load_program(self.path).module()(x.cuda())
            self.assertEqual(on_gpu.device.type, "cuda")
            self.check_outputs(on_gpu.cpu(), expected(x))
        else:
            with self.assertRaisesRegex(ProgramError, "expected a GPU, because the program was recorded on one"):
                load_program(self.path)


class Refusals(TestCase):
    def check_error(self, expected):
        with self.assertRaises(ProgramError) as caught:
            load_program(self.path)
        self.assertEqual(str(caught.exception), f"{self.path}: {expected}")

    def check_call(self, expected, op="aten::relu", overload="", results=(1,), values=2, /, **arguments):
        """Checks the error for a program with this call, whose input x is value 0."""
        writer = ProgramWriter()
        x = writer.input("x", [2, 4])
        writer.output("output", x, [2, 4])
        call = {"op": op, "overload": overload, "args": arguments, "results": list(results)}
        writer.save(self.path, calls=[call], values=values)
        self.check_error(expected)

    def test_a_missing_file_is_an_error_of_the_system(self):
        with self.assertRaises(FileNotFoundError):
            load_program(self.path)

    def test_another_version_is_named(self):
        programs.mlp()[0].save(self.path, version=2)
        self.check_error("expected a program of version 1, got version 2")

    def test_other_files_are_refused(self):
        self.path.write_bytes(b"PK\x03\x04")
        self.check_error("expected a safetensors file of at least 8 bytes, found 4")
        self.path.write_bytes(b"PK\x03\x04" * 10)
        length = int.from_bytes(b"PK\x03\x04" * 2, "little")
        self.check_error(f"expected a safetensors file, got a header of {length} bytes in a file of 40")
        save_tensors(self.path, {"weight": torch.ones(2)}, {"format": "pt"})
        self.check_error("expected a program written by sconce::program::record, got a file without 'sconce.program'")

    def test_a_file_cut_anywhere_is_refused(self):
        data = programs.mlp()[0].save(self.path).read_bytes()
        for length in range(0, len(data), 13):
            self.path.write_bytes(data[:length])
            with self.subTest(length=length), self.assertRaises(ProgramError):
                load_program(self.path)

    def test_an_altered_program_is_damaged(self):
        data = programs.mlp()[0].save(self.path).read_bytes()
        self.path.write_bytes(data.replace(b"aten::relu", b"aten::tanh"))
        with self.assertRaisesRegex(ProgramError, 'the program is damaged: expected the CRC-32 "[0-9a-f]{8}", got "'):
            load_program(self.path)

    def test_an_altered_weight_is_named(self):
        writer, _ = programs.mlp()
        data = bytearray(writer.save(self.path).read_bytes())
        weight = bytes_of(writer.tensors["head.weight"])
        data[data.index(weight)] ^= 1
        self.path.write_bytes(data)
        with self.assertRaisesRegex(ProgramError, "tensor 'head.weight' is damaged: expected the CRC-32 "):
            load_program(self.path)

    def test_a_tensor_without_a_checksum_is_refused(self):
        programs.mlp()[0].save(self.path, crc32={})
        self.check_error("'body.0.bias': expected a tensor and its CRC-32 in the program, got only one of them")

    def test_only_operators_of_aten_are_called(self):
        self.check_call("calls[0]: expected an operator from the aten namespace, got 'prims::add'", "prims::add")
        self.check_call("calls[0]: expected an operator from the aten namespace, got 'relu'", "relu")

    def test_operators_that_open_files_print_or_replace_memory_are_refused(self):
        for name in ("from_file", "set_", "set_data", "resize_", "sparse_resize_and_clear_", "shallow_copy_data_",
                     "_reshape_alias", "_print", "_sparse_csr_tensor_unsafe"):
            self.check_call(f"calls[0]: aten::{name} is rejected, because it opens files, prints, or replaces memory",
                            f"aten::{name}")

    def test_functions_of_torchscript_are_no_operators(self):
        for name in ("save", "warn", "no_such_operator"):
            self.check_call(f"calls[0]: expected an operator of PyTorch {torch.__version__}, got 'aten::{name}'",
                            f"aten::{name}")

    def test_arguments_of_another_type_are_named(self):
        place = "calls[0] aten::relu: argument 'self': "
        self.check_call(place + "expected Tensor, got 3", self=3)
        self.check_call(place + "expected Tensor, got {'value': '0'}", self={"value": "0"})
        self.check_call("calls[0] aten::chunk: argument 'chunks': expected int, got nothing", "aten::chunk", "",
                        ([1],), self={"value": 0})
        place = "calls[0] aten::sum: argument "
        x = {"value": 0}
        for name, value, kind in (("dim", [1.5], "int"), ("dim", 1, "List[int]"), ("keepdim", 1, "bool"),
                                  ("dtype", {"dtype": "float31"}, "ScalarType"), ("dtype", "float32", "ScalarType")):
            self.check_call(f"{place}'{name}': expected {kind}, got {value!r}".replace("[1.5]", "1.5"), "aten::sum",
                            "dim_IntList", **{"self": x, "dim": [1], name: value})
        self.check_call("calls[0] aten::rand: argument 'generator': arguments of type Generator are not supported",
                        "aten::rand", "generator", size=[2], generator=1)

    def test_a_device_is_the_program_s_or_the_cpu(self):
        self.check_call("calls[0] aten::ones: argument 'device': expected the program's Device or \"cpu\", got "
                        "{'device': 'cuda'}", "aten::ones", size=[1], device={"device": "cuda"})
        writer = ProgramWriter()
        writer.weight("weight", torch.ones(1), device="cuda")
        writer.save(self.path)
        self.check_error('weights[0].device: expected the program\'s device or "cpu", got "cuda"')

    def test_unknown_arguments_and_wrong_results_are_named(self):
        self.check_call("calls[0] aten::relu: argument 'other': expected one of self, got an unknown name",
                        self={"value": 0}, other=1)
        self.check_call("calls[0] aten::relu: expected 1 results, got [1, 2]", "aten::relu", "", (1, 2),
                        self={"value": 0})
        self.check_call("calls[0] aten::relu: result 0: expected a value or null, got [1]", "aten::relu", "", ([1],),
                        self={"value": 0})

    def test_a_value_is_defined_once_and_before_its_use(self):
        self.check_call("calls[0] aten::relu: argument 'self': value 1 is used before it is defined", self={"value": 1})
        self.check_call("calls[0] aten::relu: result 0: expected a new value, got 0 again", "aten::relu", "", (0,),
                        self={"value": 0})
        self.check_call("calls[0] aten::relu: result 0: expected a value from 0 to 0, got 1", "aten::relu", "", (1,), 1,
                        self={"value": 0})

    def test_a_call_that_fails_is_named(self):
        writer = ProgramWriter()
        x = writer.input("x", [2, 4])
        y = writer.call("view", self=x, size=[3])
        writer.output("output", y, [3])
        writer.save(self.path)
        with self.assertRaisesRegex(ProgramError, r"net.safetensors: calls\[0\] aten::view: .*(invalid|size)"):
            load_program(self.path)

    def test_names_that_could_become_python_code_are_refused(self):
        evil = 'x"), print("hello'
        writer = ProgramWriter()
        writer.weight(evil, torch.ones(1))
        writer.save(self.path)
        self.check_error("weights[0].name: expected letters, digits and _ between dots, got " + json.dumps(evil))
        writer = ProgramWriter()
        writer.input("x=print()", [1])
        writer.save(self.path)
        self.check_error('inputs[0].name: expected letters, digits and _, got "x=print()"')

    def test_weights_that_a_module_cannot_have_are_named(self):
        writer = ProgramWriter()
        writer.weight("forward", torch.ones(1))
        writer.save(self.path)
        self.check_error("weight 'forward': expected names that torch.nn.Module does not use itself")

    def test_an_unknown_size_is_named(self):
        writer = ProgramWriter()
        writer.input("x", [size([1, "rows"])])
        writer.save(self.path)
        self.check_error("inputs[0].shape: expected the name of a dynamic size, got 'rows'")
        writer = ProgramWriter()
        writer.size("rows")
        writer.save(self.path)
        self.check_error("size 'rows': expected an input with this size, found none")

    def test_keys_that_occur_twice_are_refused(self):
        text = '{"version": 1, "version": 1}'
        save_tensors(self.path, {}, {"sconce.program": text, "sconce.program.crc32": crc32(text.encode())})
        self.check_error("expected a program in JSON: the key 'version' occurs twice")

    def test_a_missing_entry_is_named(self):
        text = '{"version": 1, "crc32": {}}'
        save_tensors(self.path, {}, {"sconce.program": text, "sconce.program.crc32": crc32(text.encode())})
        self.check_error("device: expected a string, got nothing")

    def test_random_damage_is_an_error_with_a_place(self):
        """Damage is detected even if the checksum of the program is correct."""
        chance = random.Random(0)
        writer, _ = programs.lists()
        text = json.dumps(writer.program)
        for _ in range(300):
            place = chance.randrange(len(text))
            altered = text[:place] + chance.choice('0123456789"[]{}:,-x') + text[place + 1:]
            save_tensors(self.path, {}, {"sconce.program": altered,
                                         "sconce.program.crc32": crc32(altered.encode())})
            try:
                load_program(self.path)
            except ProgramError:
                pass  # any other exception fails


if __name__ == "__main__":
    unittest.main()
