#include "program/program_file.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "program/checksum.hpp"
#include "program/graph_reader.hpp"
#include "program/graph_writer.hpp"
#include "sconce/io/safetensors.hpp"

namespace sconce::program::detail {

namespace {

constexpr const char* program_key = "sconce.program";
constexpr const char* checksum_key = "sconce.program.crc32";
const std::string metadata_prefix = "metadata.";

std::string crc32_of_tensor(const at::Tensor& tensor) {
  const auto bytes = tensor.detach().cpu().contiguous();
  return crc32_of(bytes.const_data_ptr(), bytes.nbytes());
}

std::string example_name(const char* kind, const Port& port) {
  return std::string("example.") + kind + "." + port.name;
}

// A file's tensors and weight names, keyed by number.
struct FileTensors {
  StateDict all;
  std::map<size_t, std::string> names = {};
  Checksums checksums = {};

  void add(const std::string& name, const at::Tensor& tensor, const std::string& error_prefix) {
    TORCH_CHECK(!all.contains(name), error_prefix, "expected no weight named '", name,
                "', a name reserved by the file format");
    all.insert(name, tensor);
    checksums.emplace(name, crc32_of_tensor(tensor));
  }
};

FileTensors tensors_of(const Graph& graph, const std::string& error_prefix) {
  FileTensors tensors;
  for (const auto& weight : graph.weights) {
    if (tensors.names.emplace(weight.value, weight.name).second) {
      tensors.add(weight.name, weight.tensor, error_prefix);
    }
  }
  for (size_t i = 0; i < graph.example_inputs.size(); ++i) {
    tensors.add(example_name("inputs", graph.inputs[i]), graph.example_inputs[i], error_prefix);
  }
  for (size_t i = 0; i < graph.example_outputs.size(); ++i) {
    tensors.add(example_name("outputs", graph.outputs[i]), graph.example_outputs[i], error_prefix);
  }
  return tensors;
}

const std::string& text_of(const io::Metadata& texts, const char* key,
                           const std::string& error_prefix) {
  const auto found = texts.find(key);
  TORCH_CHECK(found != texts.end(), error_prefix,
              "expected a program written by sconce::program::record, got a safetensors file "
              "without the metadata key '",
              key, "'");
  return found->second;
}

void check_example(const Graph& graph, const StateDict& tensors, const std::string& error_prefix) {
  const auto check = [&](const char* kind, const std::vector<Port>& ports) {
    for (const auto& port : ports) {
      const auto name = example_name(kind, port);
      TORCH_CHECK(tensors.contains(name), error_prefix, "example: expected a tensor '", name,
                  "' in the file, got none");
    }
  };
  check("inputs", graph.inputs);
  check("outputs", graph.outputs);
}

}  // namespace

void write_program(const std::filesystem::path& path, const Graph& graph,
                   const std::string& error_prefix) {
  const auto tensors = tensors_of(graph, error_prefix);
  const auto text = json_of(graph, tensors.names, tensors.checksums);
  io::Metadata texts = {
      {"format", "pt"}, {program_key, text}, {checksum_key, crc32_of(text.data(), text.size())}};
  for (const auto& [key, value] : graph.metadata) texts.emplace(metadata_prefix + key, value);
  io::save_safetensors(path, tensors.all, texts);
}

Graph read_program(const std::filesystem::path& path, const std::string& error_prefix) {
  const auto texts = io::load_safetensors_metadata(path);
  const auto& text = text_of(texts, program_key, error_prefix);
  const auto& expected = text_of(texts, checksum_key, error_prefix);
  const auto found = crc32_of(text.data(), text.size());
  TORCH_CHECK(found == expected, error_prefix, "expected a program with the CRC-32 ", expected,
              ", got ", found, "; the file is damaged");
  auto parsed = parse_program(text, error_prefix);
  // The file is not memory-mapped. If memory is aligned differently than memory that LibTorch
  // allocates, kernels round differently and can be slower. Reading a copy also ensures that the
  // weights cannot change after their checksums have been compared.
  const auto tensors = io::load_safetensors(path, {.mmap = false});
  for (const auto& item : tensors) {
    const auto checksum = parsed.checksums.find(item.key());
    TORCH_CHECK(checksum != parsed.checksums.end(), error_prefix,
                "crc32: expected a checksum for the tensor '", item.key(), "', got none");
    const auto actual_crc32 = crc32_of_tensor(item.value());
    TORCH_CHECK(checksum->second == actual_crc32, error_prefix, "tensor '", item.key(),
                "': expected the CRC-32 ", checksum->second, ", got ", actual_crc32,
                "; the file is damaged");
  }
  auto& graph = parsed.graph;
  if (parsed.has_example) check_example(graph, tensors, error_prefix);
  std::map<size_t, std::string> names;
  for (size_t i = 0; i < graph.weights.size(); ++i) {
    auto& weight = graph.weights[i];
    const auto& name = parsed.tensor_names[i];
    const auto* const tensor = tensors.find(name);
    TORCH_CHECK(tensor != nullptr, error_prefix, "weights[", i, "] '", weight.name,
                "': expected a tensor '", name, "' in the file, got none");
    const auto& first = names.emplace(weight.value, name).first->second;
    TORCH_CHECK(first == name, error_prefix, "weights[", i, "] '", weight.name,
                "': expected a single tensor for the value, got '", first, "' and '", name, "'");
    weight.tensor = *tensor;
  }
  for (const auto& [key, value] : texts) {
    if (key.starts_with(metadata_prefix)) {
      graph.metadata.emplace(key.substr(metadata_prefix.size()), value);
    }
  }
  return std::move(parsed.graph);
}

}  // namespace sconce::program::detail
