#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace sconce::program::detail {

/// A file of the Python package sconce_cpp.
struct PythonFile {
  const char* name;
  std::string_view text;
};

/// Returns the files of the package, which the library contains, so that a program needs only a
/// Python with PyTorch. Their source is apps/export/sconce_cpp.
std::span<const PythonFile> python_package();

/// Returns the Python that has the LibTorch in use, or "python3" if that came in no Python package.
std::filesystem::path default_python();

}  // namespace sconce::program::detail
