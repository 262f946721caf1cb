#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "io/input_file.hpp"
#include "io/safetensors_header.hpp"

// Recognizes other file types, because weights are usually downloaded, and it is easy to save the
// wrong file under the right name.
namespace sconce::io {

/// The kinds of files that are likely to be mistaken for weight files.
enum class FileKind : uint8_t {
  safetensors,
  zip_archive,
  pickle,
  gzip,
  lfs_pointer,
  html,
  json,
  unknown
};

/// Returns the kind of file that the first bytes indicate.
inline FileKind file_kind(const InputFile& file) {
  std::array<char, 64> bytes = {};
  const auto size = std::min<uint64_t>(file.size(), bytes.size());
  file.read(0, bytes.data(), size);
  std::string_view begin(bytes.data(), size);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header <= max_header_size && begin.size() > sizeof(header) && begin[sizeof(header)] == '{')
    return FileKind::safetensors;
  if (begin.starts_with("PK\3\4")) return FileKind::zip_archive;
  if (begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5)
    return FileKind::pickle;
  if (begin.starts_with("\x1f\x8b")) return FileKind::gzip;
  if (begin.starts_with("version https://git-lfs")) return FileKind::lfs_pointer;
  if (begin.starts_with("\xef\xbb\xbf")) begin.remove_prefix(3);  // UTF-8 byte order mark
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  std::string lower(begin);
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html")) return FileKind::html;
  return lower.starts_with("{") ? FileKind::json : FileKind::unknown;
}

/// Returns the name of the kind, including its article, for error messages.
inline const char* name_of(FileKind kind) {
  switch (kind) {
    case FileKind::safetensors:
      return "a safetensors file";
    case FileKind::zip_archive:
      return "a zip archive, as written by torch.save";
    case FileKind::pickle:
      return "a pickle, as written by torch.save before torch 1.6";
    case FileKind::gzip:
      return "a gzip file";
    case FileKind::lfs_pointer:
      return "a Git LFS pointer to a file that was not downloaded";
    case FileKind::html:
      return "an HTML page";
    case FileKind::json:
      return "a JSON text";
    case FileKind::unknown:
      return "a file of unknown type";
  }
  return "";
}

}  // namespace sconce::io
