"""Writes an exported program as ONNX, a .pt2 file, or a compiled package, and runs the resulting files."""
import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile

import torch

from . import ProgramError
from .operators import SizeSum
from .rebuild import causes, dynamic_shapes, export_program

LARGEST_SINGLE_ONNX = 2**31 - 2**20  # protobuf rejects messages of 2 GiB or larger
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 2e-3}
TOLERANCE = 1e-5  # for other types


def require(option, *packages):
    """Raises an error that includes the installation command if any packages are missing."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise ProgramError(f"{option} needs {' and '.join(missing)}. To install: "
                           f"{sys.executable} -m pip install {' '.join(missing)}")


def require_compiler(option):
    """Raises an error if the compiler that PyTorch invokes is missing."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ProgramError(f"{option} needs a C++ compiler, and there is no '{compiler}'. To install: apt install g++")


def replace_whole(path, write):
    """Calls write(file) with a path in a temporary folder next to `path`, and then moves the written files to the
    folder of `path`. If writing fails, no files are left behind."""
    path = pathlib.Path(os.path.realpath(path))
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".sconce-export-") as folder:
        write(os.path.join(folder, path.name))
        # The file itself is moved last, after the data files that it refers to.
        for name in sorted(os.listdir(folder), reverse=True):
            os.replace(os.path.join(folder, name), path.parent / name)


def write_onnx(program, path):
    """Writes an ONNX file with the program's names. For a model of 2 GiB or larger, also writes a second file,
    <path>.data."""
    exported = export_program(program, "cpu")
    try:
        model = torch.onnx.export(
            exported, (), dynamo=True, verbose=False, dynamic_shapes=dynamic_shapes(program),
            input_names=[spec.name for spec in program.inputs], output_names=[spec.name for spec in program.outputs])
    except Exception as error:
        missing = re.search(r"No ONNX function found for <OpOverload\(op='aten\.(\w+)', overload='(\w+)'\)>",
                            "\n".join(str(cause) for cause in causes(error)))
        if missing is None:
            raise
        name = missing[1] + ("" if missing[2] == "default" else f".{missing[2]}")
        raise ProgramError(f"{path}: ONNX has no operator for aten::{name}: write a package with --package, or run "
                           "the program in C++ with sconce::program::Program") from error
    size = sum(tensor.nbytes for tensor in exported.state_dict.values())
    replace_whole(path, lambda file: model.save(file, external_data=size > LARGEST_SINGLE_ONNX))


def write_pt2(program, path):
    """Writes a file that torch.export.load can read."""
    exported = export_program(program)
    replace_whole(path, lambda file: torch.export.save(exported, file))


def write_package(program, path):
    """Compiles the program for this machine into a package for AOTIModelPackageLoader. The package's metadata describes
    the machine and the rows of the first input."""
    exported = export_program(program)
    about = {"torch": torch.__version__.split("+")[0], "cpu": torch.backends.cpu.get_cpu_capability()}
    spec = program.inputs[0] if program.inputs else None
    if spec and spec.shape and not any(isinstance(entry, SizeSum) for entry in spec.shape[1:]):
        about["rows"] = f"{spec.dtype} {torch.Size(spec.shape[1:])}"

    replace_whole(path, lambda file: torch._inductor.aoti_compile_and_package(
        exported, package_path=file, inductor_configs={"aot_inductor.metadata": about}))


def run_onnx(program, path, inputs):
    import onnxruntime

    values = {spec.name: to_onnxruntime(onnxruntime, tensor) for spec, tensor in zip(program.inputs, inputs)}
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        outputs = session.run_with_ort_values([spec.name for spec in program.outputs], values)
    except Exception as error:  # ONNX Runtime has a class for each error code
        raise ProgramError(f"{path}: ONNX Runtime cannot run it: {error}") from error
    return [torch.from_dlpack(output) for output in outputs]


def to_onnxruntime(onnxruntime, tensor):
    if tensor.dtype != torch.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())
    bfloat16 = 16  # onnx.TensorProto.BFLOAT16, which numpy does not support
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(tensor.view(torch.int16).numpy(), bfloat16)


def run_pt2(program, path, inputs):
    return torch.export.load(path).module()(*inputs)


def run_package(program, path, inputs):
    return torch._inductor.aoti_load_package(path)(*inputs)


def run_program(program, path, inputs):
    return export_program(program).module()(*inputs)


def largest_difference(outputs, expected):
    """Returns the largest difference and the tolerance of the output whose difference is largest relative to its
    tolerance. If the largest expected magnitude exceeds 1, differences are divided by it."""
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    worst = (0.0, TOLERANCE)
    for output, right in zip(outputs, expected, strict=True):
        difference, tolerance = difference_of(output.detach().cpu(), right), TOLERANCES.get(right.dtype, TOLERANCE)
        if difference / tolerance >= worst[0] / worst[1]:
            worst = (difference, tolerance)
    return worst


def difference_of(output, expected):
    if output.shape != expected.shape or output.dtype != expected.dtype:
        return float("inf")
    kind = torch.complex128 if expected.is_complex() else torch.float64
    output, expected = output.to(kind), expected.to(kind)
    same = (output == expected) | (output.isnan() & expected.isnan())
    finite = expected[expected.isfinite()].abs()
    scale = max(1.0, finite.max().item()) if finite.numel() else 1.0
    difference = torch.where(same, 0.0, (output - expected).abs() / scale)
    return difference.nan_to_num(nan=float("inf"), posinf=float("inf")).max().item() if difference.numel() else 0.0


def check(program, path, run):
    """Runs a file on the program's example. Returns the largest difference from the C++ outputs and the largest allowed
    difference."""
    device = "cpu" if run is run_onnx else program.device
    inputs = [tensor.clone().to(device) for tensor in program.example("inputs")]
    with torch.no_grad():
        return largest_difference(run(program, path, inputs), program.example("outputs"))
