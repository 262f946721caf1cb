"""Compiles a part of a captured step for AOTInductor's runtime in C++:
    python -m sconce_cpp.compile_step PROGRAM PACKAGE --threads N
"""
import argparse
import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent():
    """Lets the system end this process with the one that started it, whose step it compiles."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def copying_module(module_class):
    """Returns a class of modules that copy a result before they change its shape. Inductor may lay a result out otherwise
    than the operator does, after torch.export has taken a view for possible."""
    import torch

    class CopyingModule(module_class):
        def _run_call(self, call, values, sizes):
            if call.operator is torch.ops.aten.reshape.default:
                number = call.arguments[0].number
                if values[number].dim() != 1:  # memory is a vector, which calls write into
                    values[number] = values[number].clone(memory_format=torch.contiguous_format)
            super()._run_call(call, values, sizes)

    return CopyingModule


def compile_step(path, package, threads):
    """Compiles the program. It may write into its inputs, unlike a program that is exported."""
    import torch  # not above: it takes seconds, in which the parent may end

    from . import ProgramError
    from .program_file import read_program
    from .rebuild import RecordedModule, default_device, traced_inputs, without_messages

    program = read_program(path)
    found = torch.__version__.split("+")[0]
    if found != program.torch:
        raise ProgramError(f"expected PyTorch {program.torch}, the version of the program's LibTorch, found {found}")
    device = default_device(program, None)
    torch.set_num_threads(threads)
    # Random numbers come from LibTorch's generators, as in C++.
    config = {"fallback_random": True}

    def compile_as(module_class):
        with without_messages(), torch.no_grad():
            exported = torch.export.export(module_class(program, device).eval(), traced_inputs(program, {}, device),
                                           strict=False)
            torch._inductor.aoti_compile_and_package(exported, package_path=package, inductor_configs=config)

    try:
        compile_as(RecordedModule)
    except Exception:  # of a class that PyTorch chooses
        compile_as(copying_module(RecordedModule))


def main():
    parser = argparse.ArgumentParser(prog="python -m sconce_cpp.compile_step")
    parser.add_argument("program")
    parser.add_argument("package")
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    end_with_parent()
    try:
        compile_step(options.program, options.package, options.threads)
    except Exception as error:  # whatever PyTorch raises; the last line that is printed is the warning of C++
        lines = str(error).strip().splitlines() or ["no message"]
        sys.exit(f"{type(error).__name__}: {lines[0]}")


if __name__ == "__main__":
    main()
