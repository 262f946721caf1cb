"""Compiles a part of a captured step for AOTInductor's C++ runtime:

    python -m sconce_cpp.compile_step PROGRAM PACKAGE --threads N
"""
import argparse
import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent():
    """Makes the system terminate this process when its parent, whose step is being compiled, ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def decompose_calls_of_lists():
    """Lets Inductor fuse the norms of gradient clipping and the operations of a gradient scaler, which would otherwise
    run as separate LibTorch kernels."""
    import torch
    from torch._inductor.decomposition import register_decomposition

    aten = torch.ops.aten

    @register_decomposition([aten._foreach_norm.Scalar])
    def norms(tensors, ord=2, dtype=None):
        return [torch.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in tensors]

    @register_decomposition([aten._amp_foreach_non_finite_check_and_unscale.default])
    def check_and_unscale(tensors, found_inf, inv_scale):
        for tensor in tensors:
            found_inf = torch.where(torch.isfinite(tensor).all(), found_inf, 1.0)
        return [tensor * inv_scale for tensor in tensors], found_inf


def compile_step(path, package, threads):
    """Compiles the program, which, unlike an exported program, may write to its inputs."""
    import torch  # imported here, because importing takes seconds, during which the parent may end

    from . import ProgramError
    from .program_file import read_program
    from .rebuild import RecordedModule, default_device, traced_inputs, without_messages

    program = read_program(path)
    found = torch.__version__.split("+")[0]
    if found != program.torch:
        raise ProgramError(f"expected PyTorch {program.torch}, the version of the program's LibTorch, found {found}")
    device = default_device(program, None)
    torch.set_num_threads(threads)
    decompose_calls_of_lists()
    # Random numbers are drawn from LibTorch's generators, as in C++. Precompiled headers are disabled, because Inductor
    # would store them in a folder in /tmp with a predictable name, which another user could create first.
    config = {"fallback_random": True, "aot_inductor.precompile_headers": False}
    with without_messages(), torch.no_grad():
        exported = torch.export.export(RecordedModule(program, device).eval(), traced_inputs(program, {}, device),
                                       strict=False)
        torch._inductor.aoti_compile_and_package(exported, package_path=package, inductor_configs=config)


def main():
    parser = argparse.ArgumentParser(prog="python -m sconce_cpp.compile_step")
    parser.add_argument("program")
    parser.add_argument("package")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    end_with_parent()
    try:
        compile_step(options.program, options.package, options.threads)
    except Exception as error:  # PyTorch raises many exception types; C++ shows the last printed line in its warning
        lines = str(error).strip().splitlines() or ["no message"]
        sys.exit(f"{type(error).__name__}: {lines[0]}")


if __name__ == "__main__":
    main()
