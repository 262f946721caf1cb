#pragma once

#include <c10/util/Exception.h>

#include <filesystem>
#include <string>

namespace sconce {

/// Rejects paths that contain a NUL byte. The system would ignore everything after the NUL byte and
/// use a different file.
inline void check_path(const std::filesystem::path& path, const std::string& caller) {
  const std::string& text = path.native();
  const size_t end = text.find('\0');
  TORCH_CHECK(end == text.npos, caller, ": ", text.substr(0, end),
              ": expected a path without NUL bytes, got a NUL byte after ", end, " bytes");
}

}  // namespace sconce
