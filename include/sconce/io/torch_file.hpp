#pragma once

#include <ATen/core/ivalue.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <filesystem>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// Options of `load_torch` and `load_torch_state_dict`.
struct TorchFileOptions {
  torch::Device device = c10::kCPU;  ///< device of the loaded tensors, whatever it was when saved

  /// Whether to refuse files without checksums, in which damage cannot be detected.
  bool require_checksums = false;

  /// Limit of the memory for what the file does not store byte by byte: values other than tensors'
  /// elements, and compressed records. It is 48 MiB plus this many bytes for each byte of the file.
  uint64_t max_expansion = 12;
};

/// Reads a file that Python's `torch.save` wrote, with the types of state dicts: None, bool, int,
/// float, str, lists, tuples (also torch.Size), dicts with keys of type str or int (also
/// OrderedDict and Counter) and strided tensors (also Parameters). Attributes of dicts and tensors
/// are ignored. Tensors that shared memory when saved share it again. Any other type is refused,
/// and code in the file never runs. The checksum of each record is checked, unless all checksums
/// are 0, as after `set_crc32_options(False)`. Also reads files of big-endian machines and archives
/// that were compressed again.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error, naming the path and the record or byte, if:
/// - the file is not such an archive, like TorchScript archives and files from before torch 1.6;
/// - the file is damaged, or has no checksums and `require_checksums` is set;
/// - it needs more memory than `max_expansion` allows, or keys of a dict share a hash;
/// - it contains any other type;
/// - containers nest deeper than 1000 or contain themselves;
/// - a tensor has more than 64 dimensions.
c10::IValue load_torch(const std::filesystem::path& path, TorchFileOptions options = {});

/// Returns whether a file looks like one of `torch.save`, by its first bytes: a zip archive, or the
/// bare pickle of torch 1.5 and older, which `load_torch` refuses with what to do. Tells files of
/// weights from those for `load_safetensors`, because names can be wrong.
/// Python: `torch.serialization._is_zipfile`.
/// @throw c10::Error, naming the path, if it cannot be read or is not a regular file.
bool is_torch_file(const std::filesystem::path& path);

/// Writes a file that Python's `torch.load(path, weights_only=True)` opens, with the types that
/// `load_torch` reads. Tensors of any device are saved as CPU tensors. Each is saved with the whole
/// memory that it views, and tensors that share memory share it in the file. The file appears
/// complete or not at all, and an existing file is replaced as by `save_safetensors`. Python:
/// `torch.save(value, path)`.
/// @throw c10::Error, naming the path, if a value cannot be saved or if writing fails. The text
/// names the place of such a value, as in `['state'][0]`, and the file is not touched.
void save_torch(const std::filesystem::path& path, const c10::IValue& value);

/// Reads a file written by Python's `torch.save(module.state_dict(), path)`, for
/// `nn::load_state_dict`.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error under the same conditions as `load_torch`, or if the value is not a dict, or a
/// key is not a str or its value not a tensor; the text then names the key.
StateDict load_torch_state_dict(const std::filesystem::path& path, TorchFileOptions options = {});

/// Writes a state dict as `save_torch` writes a dict. Python: `torch.save(state, path)`.
/// @throw c10::Error under the same conditions as `save_torch` of a value.
void save_torch(const std::filesystem::path& path, const StateDict& state);

/// Converts a dict, such as one inside a larger value, to a state dict.
/// @throw c10::Error if the value is not a dict, or if a key is not a str or its value not a
/// tensor; the text then names the key.
StateDict as_state_dict(const c10::IValue& value);

/// Converts a state dict to a dict that can be part of a larger value.
c10::IValue as_ivalue(const StateDict& state);

}  // namespace sconce::io
