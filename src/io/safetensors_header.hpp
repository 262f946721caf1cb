#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The header of a safetensors file: the names, types, shapes, and offsets of its tensors, as JSON.
namespace sconce::io {

/// A type in the format, with its name in files.
struct SafetensorsType {
  const char* name;
  c10::ScalarType type;
  int bits;  ///< bits per element in the format; LibTorch packs two 4-bit elements
};

/// The entry for one tensor in the header.
struct SafetensorsEntry {
  std::string name = {};
  SafetensorsType type = {};
  std::vector<int64_t> shape = {};  ///< in elements of the format
  uint64_t begin = 0;               ///< first byte, relative to the end of the header
  uint64_t end = 0;

  /// Returns the shape of the LibTorch tensor.
  std::vector<int64_t> sizes() const;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata = {};
  std::vector<SafetensorsEntry> entries = {};  ///< in the order of their bytes
};

/// The maximum header size in the format, in bytes.
constexpr uint64_t max_header_size = 100'000'000;

/// Returns the type with the given name or LibTorch type, or null. LibTorch does not support the
/// format's 6-bit types, and the format does not support complex128 or quantized types.
const SafetensorsType* find_type(std::string_view name);
const SafetensorsType* find_type(c10::ScalarType type);

/// Parses a header that precedes `data_size` bytes of tensor data, and checks all rules of the
/// format. Error messages start with `error_prefix`.
/// @throw c10::Error with the entry or the byte offset.
SafetensorsHeader parse_header(std::string_view text, uint64_t data_size,
                               const std::string& error_prefix);

/// Returns the JSON, padded to a multiple of 8 bytes.
/// @throw c10::Error if a name or string is not valid UTF-8.
std::string header_text(const SafetensorsHeader& header, const std::string& error_prefix);

}  // namespace sconce::io
