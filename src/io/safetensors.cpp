#include "sconce/io/safetensors.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "io/file_kind.hpp"
#include "io/input_file.hpp"
#include "io/safetensors_header.hpp"
#include "nn/name_hashes.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce::io {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

constexpr uint64_t length_size = 8;  // bytes of the header's length field

struct Located {
  SafetensorsHeader header;
  uint64_t data = 0;  // where the tensor data starts
};

Located read_header(const InputFile& file) {
  const auto kind = file_kind(file);
  TORCH_CHECK(kind == FileKind::safetensors || kind == FileKind::unknown, file.name(),
              "expected a safetensors file, got ", name_of(kind));
  TORCH_CHECK(file.size() >= length_size, file.name(), "expected a safetensors file of at least ",
              length_size, " bytes, found ", file.size());
  uint64_t length = 0;
  file.read(0, &length, length_size);
  TORCH_CHECK(length <= max_header_size, file.name(), "expected a header of at most ",
              max_header_size, " bytes, got a length of ", length);
  TORCH_CHECK(length <= file.size() - length_size, file.name(), "expected a header of ", length,
              " bytes, found a file of ", file.size());
  std::string text(length, '\0');
  file.read(length_size, text.data(), length);
  const uint64_t data = length_size + length;
  return {parse_header(text, file.size() - data, file.name()), data};
}

torch::Tensor read_tensor(const InputFile& file, const SafetensorsEntry& entry, uint64_t data) {
  const auto tensor = at::empty(entry.sizes(), entry.type.type);
  if (tensor.nbytes() > 0) {
    file.read(data + entry.begin, tensor.mutable_data_ptr(), tensor.nbytes());
  }
  return tensor;
}

// Returns a view of the mapped file, or a copy if the bytes are not aligned for the type.
torch::Tensor mapped_tensor(const std::shared_ptr<char>& file, const SafetensorsEntry& entry,
                            uint64_t data) {
  if (entry.begin == entry.end) return at::empty(entry.sizes(), entry.type.type);
  char* start = file.get() + data + entry.begin;
  if (reinterpret_cast<uintptr_t>(start) % c10::elementSize(entry.type.type) != 0) {
    const auto copy = at::empty(entry.sizes(), entry.type.type);
    std::memcpy(copy.mutable_data_ptr(), start, copy.nbytes());
    return copy;
  }
  // If the deleter were a std::function, running out of memory would terminate the process.
  auto owner = std::make_unique<std::shared_ptr<char>>(file);
  return at::for_blob(start, entry.sizes())
      .context(owner.release(), [](void* of) { delete static_cast<std::shared_ptr<char>*>(of); })
      .options(entry.type.type)
      .make_tensor();
}

// Returns the tensors in the order that the format requires: from the widest type to the narrowest,
// then by name.
std::vector<std::pair<SafetensorsEntry, torch::Tensor>> in_order(const StateDict& tensors,
                                                                 const std::string& error_prefix) {
  std::vector<std::pair<SafetensorsEntry, torch::Tensor>> all;
  for (const auto& item : tensors) {
    const auto& [name, tensor] = item.pair();
    const std::string where = error_prefix + "'" + name + "': ";
    TORCH_CHECK(name != "__metadata__", where,
                "expected a different tensor name, got a name reserved for metadata");
    TORCH_CHECK(tensor.defined() && tensor.layout() == c10::kStrided && !tensor.is_meta(), where,
                "expected a strided tensor with data");
    const auto* type = find_type(tensor.scalar_type());
    TORCH_CHECK(type != nullptr, where, "expected a type that the format supports, got ",
                tensor.scalar_type());
    TORCH_CHECK(type->bits >= 8 || tensor.dim() > 0, where,
                "expected at least one dimension for a packed 4-bit dtype, got a 0-dim tensor");
    all.push_back({{.name = name, .type = *type, .shape = tensor.sizes().vec()}, tensor.detach()});
    if (type->bits < 8) all.back().first.shape.back() *= 2;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto* left = find_type(a.first.type.type);
    const auto* right = find_type(b.first.type.type);
    return left != right ? left > right : a.first.name < b.first.name;
  });
  return all;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata) {
  const at::NoGradGuard no_grad;
  constexpr auto name = "sconce::io::save_safetensors";
  const std::string error_prefix = name + std::string(": ") + path.string() + ": ";
  auto all = in_order(tensors, error_prefix);
  SafetensorsHeader header = {.metadata = metadata};
  uint64_t next = 0;
  for (auto& [entry, tensor] : all) {
    entry.begin = next;
    entry.end = next += tensor.nbytes();
    header.entries.push_back(entry);
  }
  const std::string text = header_text(header, error_prefix);
  TORCH_CHECK(text.size() <= max_header_size, error_prefix, "expected a header of at most ",
              max_header_size, " bytes, got ", text.size());
  AtomicFile file(path, name);
  const uint64_t length = text.size();
  file.write(&length, length_size);
  file.write(text.data(), text.size());
  for (auto& [entry, tensor] : all) {
    const auto here = tensor.cpu().resolve_conj().resolve_neg().contiguous();
    file.write(here.const_data_ptr(), here.nbytes());
  }
  file.finish();
}

StateDict load_safetensors(const std::filesystem::path& path, SafetensorsOptions options) {
  const InputFile file(path, "sconce::io::load_safetensors");
  TORCH_CHECK(!options.random_access || (options.mmap && options.device.is_cpu()), file.name(),
              "expected mmap on the CPU when random_access is set, got ",
              options.mmap ? c10::str("device ", options.device) : "mmap = false");
  const auto [header, data] = read_header(file);
  const auto mapped = options.mmap ? file.map(options.random_access) : nullptr;
  std::vector<std::string_view> names;
  for (const auto& entry : header.entries) names.push_back(entry.name);
  nn::check_name_hashes(names, file.name());
  StateDict tensors;
  for (const auto& entry : header.entries) {
    const auto here = mapped ? mapped_tensor(mapped, entry, data) : read_tensor(file, entry, data);
    tensors.insert(entry.name, here.to(options.device));
  }
  return tensors;
}

Metadata load_safetensors_metadata(const std::filesystem::path& path) {
  return read_header(InputFile(path, "sconce::io::load_safetensors_metadata")).header.metadata;
}

}  // namespace sconce::io
