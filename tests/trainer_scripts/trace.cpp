#include "trainer_scripts/trace.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace trainer_scripts {

namespace {

constexpr auto crc_table = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value % 2 ? value >> 1 ^ 0xedb88320U : value >> 1;
    table[i] = value;
  }
  return table;
}();

// Computes the same checksum as Python's zlib.crc32.
uint32_t crc32(const uint8_t* bytes, size_t count, uint32_t before) {
  uint32_t crc = ~before;
  for (size_t i = 0; i < count; ++i) crc = crc >> 8 ^ crc_table[(crc ^ bytes[i]) & 0xff];
  return ~crc;
}

}  // namespace

void Trace::line(const std::string& text) {
  text_ += std::string(2 * static_cast<size_t>(depth), ' ') + text + "\n";
}

void Trace::tensors(const std::string& name, const std::vector<at::Tensor>& tensors) {
  uint32_t crc = 0;
  std::string values;
  for (const auto& tensor : tensors) {
    const auto flat = tensor.detach().contiguous();
    crc = crc32(static_cast<const uint8_t*>(flat.const_data_ptr()), flat.nbytes(), crc);
    if (values_) values += " [" + numbers(flat) + "]";
  }
  std::array<char, 9> digest;
  std::snprintf(digest.data(), digest.size(), "%08x", crc);
  line(name + " " + digest.data() + values);
}

std::string Trace::take() {
  return std::exchange(text_, {});
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

std::string numbers(const at::Tensor& tensor) {
  const auto values = tensor.detach().to(at::kDouble).contiguous();
  std::string text;
  for (int64_t i = 0; i < values.numel(); ++i) {
    text += (i > 0 ? " " : "") + number(values.const_data_ptr<double>()[i]);
  }
  return text;
}

}  // namespace trainer_scripts
