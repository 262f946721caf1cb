"""The version, read from include/sconce/version.hpp."""
import pathlib
import re

header = pathlib.Path(__file__).resolve().parents[2] / "include/sconce/version.hpp"
__version__ = ".".join(re.findall(r"#define SCONCE_VERSION_[A-Z]+ (\d+)", header.read_text()))
