#pragma once

// Modifies the text of program files for tests.

#include <torch/torch.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "sconce/io/safetensors.hpp"
#include "sconce/program/record.hpp"
#include "support/temp_dir.hpp"

namespace sconce::test {

using Json = nlohmann::ordered_json;

inline std::string crc32_of(const std::string& bytes) {
  const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  char digits[9];
  std::snprintf(digits, sizeof(digits), "%08lx", checksum);
  return digits;
}

/// Returns the text of a program file.
inline std::string program_text(const std::filesystem::path& file) {
  return io::load_safetensors_metadata(file).at("sconce.program");
}

/// Writes a copy of the program file with this text and the matching CRC-32 checksum.
inline std::filesystem::path with_text(const std::filesystem::path& file, const std::string& text) {
  auto metadata = io::load_safetensors_metadata(file);
  metadata["sconce.program"] = text;
  metadata["sconce.program.crc32"] = crc32_of(text);
  const auto changed = file.parent_path() / "changed.safetensors";
  io::save_safetensors(changed, io::load_safetensors(file, {.mmap = false}), metadata);
  return changed;
}

/// Applies `change` to the JSON of the program file, and writes the result to a copy with the
/// correct CRC-32 checksum.
inline std::filesystem::path with_json(const std::filesystem::path& file,
                                       const std::function<void(Json&)>& change) {
  auto json = Json::parse(program_text(file));
  change(json);
  return with_text(file, json.dump());
}

/// Writes the program of a linear layer and an activation with one dynamic size. x is value 0, the
/// weight is value 1, and the bias is value 2. The results of aten::addmm and aten::elu are values
/// 3 and 4.
inline std::filesystem::path write_linear(const TempDir& folder, bool save_example = false) {
  torch::manual_seed(0);
  torch::nn::Linear net(2, 2);
  const auto forward = [&](const program::Tensors& in) {
    return program::Tensors{torch::elu(torch::addmm(net->bias, in[0], net->weight))};
  };
  const auto file = folder.path() / "net.safetensors";
  program::record(
      file, forward, {{"x", torch::randn({2, 2})}},
      {.dynamic_shapes = {{"x", 0}}, .save_example = save_example, .module = net.ptr()});
  return file;
}

}  // namespace sconce::test
