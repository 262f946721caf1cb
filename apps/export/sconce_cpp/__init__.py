"""Reads programs that sconce recorded in C++ (`sconce::program::record`). Needs PyTorch alone."""
__all__ = ["ProgramError", "load_program"]


class ProgramError(ValueError):
    """What is wrong with a program file: the file, the place, what was expected, and what was found."""


def load_program(path, device=None):
    """Returns the recorded program as a `torch.export.ExportedProgram`.

    Parameters and buffers keep their C++ names, constants are buffers, and inputs keep their names. Dynamic sizes are
    `torch.export.Dim`s under the program's names. The exported program returns a tensor, or a tuple if the program has
    several outputs. It is on `device`, by default on the type of device that the program was recorded on.

    Raises `ProgramError` if the file is not a program of a known version, if it is damaged, or if it contains anything
    but LibTorch's operators.
    """
    from .program_file import read_program  # not above: importing torch takes seconds
    from .rebuild import export_program

    return export_program(read_program(path), device)
