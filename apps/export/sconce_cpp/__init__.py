"""Reads programs that sconce recorded in C++ (`sconce::program::record`). Requires only PyTorch."""
__all__ = ["ProgramError", "load_program"]


class ProgramError(ValueError):
    """An error in a program file. The message states the file, the location, the expected value, and the actual
    value."""


def load_program(path, device=None):
    """Returns the recorded program as a `torch.export.ExportedProgram`.

    Parameters, buffers, and inputs keep their C++ names. Constants become buffers, and dynamic sizes become
    `torch.export.Dim`s with the program's names. The exported program returns a tensor, or a tuple if the program has
    several outputs. The program is on `device`, which defaults to the type of device that the program was recorded on.

    Raises `ProgramError` if the file is not a program of a supported version, if it is corrupted, or if it calls any
    operator that is not part of LibTorch.
    """
    from .program_file import read_program  # imported here, because importing torch takes seconds
    from .rebuild import export_program

    return export_program(read_program(path), device)
