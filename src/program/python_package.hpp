#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace sconce::program::detail {

/// A file from the Python package sconce_cpp.
struct PythonFile {
  const char* name;
  std::string_view text;
};

/// Returns the files in the package. They are embedded in the library, so a program needs only a
/// Python installation with PyTorch. The source files are in apps/export/sconce_cpp.
std::span<const PythonFile> python_package();

/// Returns the Python that contains the current LibTorch, or "python3" if LibTorch is not part of a
/// Python package.
std::filesystem::path default_python();

}  // namespace sconce::program::detail
