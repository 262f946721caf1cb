#pragma once

#include <cstddef>
#include <string>

#include "io/input_file.hpp"

// These functions return CRC-32 checksums as eight hexadecimal digits.
namespace sconce::program::detail {

std::string crc32_of(const void* data, size_t size);

/// @throw c10::Error if the file cannot be read.
std::string crc32_of(const io::InputFile& file);

}  // namespace sconce::program::detail
