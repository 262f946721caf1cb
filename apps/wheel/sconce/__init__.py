"""The sources of sconce, a C++ library built on LibTorch, for use with CMake."""
import importlib.metadata
import pathlib

__version__ = importlib.metadata.version("sconce-cpp")


def cmake_dir():
    """Returns the folder to use as the value of CMake's sconce_DIR."""
    return pathlib.Path(__file__).resolve().parent / "cmake"
