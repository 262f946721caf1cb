"""The sources of sconce, a C++ library over LibTorch, for CMake."""
import importlib.metadata
import pathlib

__version__ = importlib.metadata.version("sconce-cpp")


def cmake_dir():
    """Returns the folder for CMake's sconce_DIR."""
    return pathlib.Path(__file__).resolve().parent / "cmake"
