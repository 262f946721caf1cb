#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

/// Implements the Protobuf wire format. A message is a sequence of fields. The key of a field
/// consists of its number and its wire type. Python omits numeric fields that are 0.
namespace sconce::protobuf {

/// Returns the bytes in little-endian order on any machine.
inline std::string fixed(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

/// Encodes a number as a varint, using as few bytes as possible.
inline std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  return text + static_cast<char>(value);
}

inline std::string varint_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

inline std::string double_field(uint64_t number, double value) {
  return varint(number << 3 | 1) + fixed(std::bit_cast<uint64_t>(value), 8);
}

/// Returns a field that contains bytes, a string, or a message.
inline std::string bytes_field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

inline std::string float_field(uint64_t number, float value) {
  return varint(number << 3 | 5) + fixed(std::bit_cast<uint32_t>(value), 4);
}

/// Returns a field that contains a list of numbers.
inline std::string packed_field(uint64_t number, const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) bytes += fixed(std::bit_cast<uint64_t>(value), 8);
  return bytes_field(number, bytes);
}

}  // namespace sconce::protobuf
