"""The version of the wheels, parsed from include/sconce/version.hpp, such as 0.3.0, or 0.3.0.dev0 before that
release."""
import pathlib
import re

header = (pathlib.Path(__file__).resolve().parents[2] / "include/sconce/version.hpp").read_text()
is_released = re.search(r'SCONCE_VERSION_SUFFIX ""', header)
__version__ = ".".join(re.findall(r"#define SCONCE_VERSION_[A-Z]+ (\d+)", header)) + ("" if is_released else ".dev0")
