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

/// Returns the files of the package. They are embedded in the library, so a program only needs a
/// Python with PyTorch. Their source is in apps/export/sconce_cpp.
std::span<const PythonFile> python_package();

/// Returns the Python that contains the LibTorch in use, or "python3" if LibTorch is not part of a
/// Python package.
std::filesystem::path default_python();

}  // namespace sconce::program::detail
