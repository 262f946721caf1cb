"""The properties that determine the exact numbers in a lesson's output: LibTorch and the CPU."""
import collections
import os
import pathlib
import platform
import re

# The instruction sets that select other kernels, which sum in a different order.
INSTRUCTION_SETS = ["avx2", "avx512f", "avx512_bf16", "amx_bf16"]


def cpu(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """Returns the CPU vendor and the instruction sets, such as "GenuineIntel avx2 avx512f"."""
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    vendor = re.search(r"^vendor_id\s*: (\S+)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)", text, re.MULTILINE)
    if not vendor or not flags:
        return platform.machine()
    return " ".join([vendor[1], *(name for name in INSTRUCTION_SETS if name in flags[1].split())])


def gpu_names(gpus):
    """Returns the GPUs, such as "2 x NVIDIA L4", or "" if there are none."""
    counts = collections.Counter(gpus)
    return " and ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def torch_root(bin_folder):
    """Returns the folder of the LibTorch that the lessons were built with, or None."""
    cache = bin_folder.parents[1] / "CMakeCache.txt"
    chosen = re.search(r"^SCONCE_TORCH_CHOSEN:INTERNAL=(.+)", cache.read_text() if cache.exists() else "",
                       re.MULTILINE)
    return pathlib.Path(chosen[1]) if chosen else None


def torch_version(bin_folder):
    """Returns the version, such as "2.15.0+cu132", or None if the build does not record it."""
    root = torch_root(bin_folder)
    if not root:
        return None
    if (root / "version.py").exists():
        return re.search(r"__version__ = '(.+)'", (root / "version.py").read_text())[1]
    return (root / "build-version").read_text().strip() if (root / "build-version").exists() else None


def python_folder(bin_folder):
    """Returns the folder that contains the Python and torchrun of the build's LibTorch, or None if there is no such
    folder."""
    root = torch_root(bin_folder)
    return root.parents[3] / "bin" if root and (root / "version.py").exists() else None


def environment(folder=None, **more):
    """Returns the environment for running a lesson, with one thread and with the folder's torchrun in the PATH."""
    path = [str(folder)] if folder else []
    return dict(os.environ, PATH=os.pathsep.join([*path, os.environ["PATH"]]),
                PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", **more)
