"""The sconce-export command, which converts a program recorded in C++ to ONNX, a .pt2 file, or a compiled package."""
import argparse
import contextlib
import os
import pathlib
import sys
import tempfile

from . import ProgramError

NAME = "sconce-export"


class Parser(argparse.ArgumentParser):
    """Prints the error for an invalid command line as a single line."""

    def error(self, message):
        print(f"{NAME}: {message} (--help lists the flags)", file=sys.stderr)
        sys.exit(2)


def parse(arguments):
    parser = Parser(prog=NAME, description="Converts a program that sconce::program::record recorded in C++ for "
                                           "other runtimes.", allow_abbrev=False)
    parser.add_argument("program", metavar="PROGRAM", help="the recorded program")
    parser.add_argument("--onnx", metavar="FILE", help="write ONNX (needs the packages onnx and onnxscript)")
    parser.add_argument("--pt2", metavar="FILE.pt2", help="write a file for torch.export.load")
    parser.add_argument("--package", metavar="FILE.pt2",
                        help="compile a package for AOTIModelPackageLoader (needs a C++ compiler)")
    parser.add_argument("--check", action="store_true",
                        help="run PROGRAM and each written file on the program's example, print the largest difference "
                             "from the outputs in C++, and fail if it exceeds 1e-5 (bfloat16: 2e-2, float16: 2e-3), "
                             "relative to outputs above 1")
    options = parser.parse_args(arguments)
    files = [file for file in (options.onnx, options.pt2, options.package) if file is not None]
    if not files and not options.check:
        parser.error("expected --onnx, --pt2, --package, or --check")
    if len({os.path.realpath(file) for file in (options.program, *files)}) <= len(files):
        parser.error("expected different output files")
    for option in ("pt2", "package"):
        file = getattr(options, option)
        if file is not None and not file.endswith(".pt2"):
            parser.error(f"--{option}: expected a name that ends with .pt2, got '{file}'")
    return options


@contextlib.contextmanager
def quiet():
    """Discards the output of PyTorch's exporters and compilers, which also write directly to the file descriptors."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as discarded:
        os.dup2(discarded.fileno(), 1)
        os.dup2(discarded.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, number in zip(saved, (1, 2)):
                os.dup2(descriptor, number)
                os.close(descriptor)


def say(text):
    try:
        print(text, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise, Python would try to write again at exit
        raise ProgramError("cannot write to standard output") from None


def check_folders(files):
    """Checks everything about the output files that can be checked before writing them."""
    for file in files:
        path = pathlib.Path(os.path.realpath(file))
        if not path.parent.is_dir():
            raise ProgramError(f"{file}: expected an existing folder, got '{path.parent}'")
        if path.is_dir():
            raise ProgramError(f"{file}: expected a file, got a folder")


def run(options):
    """Runs the command and returns the exit code."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise ProgramError(f"PyTorch is missing. To install: {sys.executable} -m pip install torch") from None
    from . import written_files
    from .program_file import read_program

    if options.onnx is not None:
        written_files.require("--onnx", "onnx", "onnxscript", *(["onnxruntime"] if options.check else []))
    if options.package is not None:
        written_files.require_compiler("--package")
    # ONNX is written last, because its exporter replaces the decompositions of LSTM and GRU for the entire process.
    jobs = [(file, write, execute) for file, write, execute in (
        (options.package, written_files.write_package, written_files.run_package),
        (options.pt2, written_files.write_pt2, written_files.run_pt2),
        (options.onnx, written_files.write_onnx, written_files.run_onnx)) if file is not None]
    check_folders(file for file, _, _ in jobs)
    program = read_program(options.program)
    if options.check and not program.has_example:
        raise ProgramError(f"{options.program}: --check needs an example: record the program with .save_example = true")
    for file, write, _ in jobs:
        with quiet():
            write(program, file)
        say(f"wrote {file}")
    passed = True
    if options.check:
        for file, _, execute in [(options.program, None, written_files.run_program), *jobs]:
            with quiet():
                difference, tolerance = written_files.check(program, file, execute)
            say(f"{file}: largest difference {difference:.2g}, at most {tolerance:g} expected")
            passed = passed and difference <= tolerance
    return 0 if passed else 1


def describe(error):
    """Returns a one-line description of an error."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    elif not isinstance(error, (ProgramError, OSError)):
        text = f"{type(error).__name__}: {text}"
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)


def main(arguments=None):
    options = parse(arguments)
    try:
        return run(options)
    except Exception as error:  # exporters and compilers raise many exception types
        print(f"{NAME}: {describe(error)}", file=sys.stderr)
        return 1
