"""Reads programs that sconce recorded in C++ (`sconce::program::record`). Needs only PyTorch."""
__all__ = ["ProgramError", "load_program"]


class ProgramError(ValueError):
    """An error in a program file. The message contains the file, the location, the expected value, and the actual one."""


def load_program(path, device=None):
    """Returns the recorded program as a `torch.export.ExportedProgram`.

    Parameters, buffers, and inputs keep their C++ names. Constants become buffers, and dynamic sizes become
    `torch.export.Dim`s with the program's names. The exported program returns a tensor, or a tuple if the program has
    several outputs. It is on `device`. By default, this is the type of device that the program was recorded on.

    Raises `ProgramError` if the file is not a program of a known version, if it is damaged, or if it contains anything
    other than LibTorch's operators.
    """
    from .program_file import read_program  # not at the top: importing torch takes seconds
    from .rebuild import export_program

    return export_program(read_program(path), device)
