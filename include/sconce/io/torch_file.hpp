#pragma once

#include <ATen/core/ivalue.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <filesystem>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// Options for `load_torch` and `load_torch_state_dict`.
struct TorchFileOptions {
  torch::Device device = c10::kCPU;  ///< device of the loaded tensors; the saved device is ignored

  /// Whether to reject files without checksums. Damage to a file without checksums cannot be
  /// detected.
  bool require_checksums = false;

  /// Memory limit for data whose size in memory differs from its size in the file: compressed
  /// records, and all values except tensor elements. The limit is 48 MiB plus `max_expansion` bytes
  /// for each byte of the file.
  uint64_t max_expansion = 12;
};

/// Loads a file saved by Python's `torch.save`. The file may contain the types found in state
/// dicts: None, bool, int, float, str, lists, tuples (including torch.Size), dicts with str or int
/// keys (including OrderedDict and Counter), and strided tensors (including Parameters). Attributes
/// of dicts and tensors are ignored. Tensors that shared memory when they were saved also share
/// memory after loading. Any other type causes an error, and code in the file is never executed.
/// The checksum of each record is verified unless all checksums are 0, as in files saved after
/// `set_crc32_options(False)`. Files from big-endian machines and recompressed archives are also
/// supported.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error, with the path and the record or byte in the message, if:
/// - the file is not an archive written by `torch.save`, such as a TorchScript archive or a file
///   saved by a version before torch 1.6;
/// - the file is damaged, or has no checksums and `require_checksums` is set;
/// - the file needs more memory than `max_expansion` allows, or keys of a dict have the same hash;
/// - the file contains an unsupported type;
/// - containers are nested more than 1000 levels deep or contain themselves;
/// - a tensor has more than 64 dimensions.
c10::IValue load_torch(const std::filesystem::path& path, TorchFileOptions options = {});

/// Returns whether a file looks like the output of `torch.save`, based on its first bytes. Returns
/// true for zip archives and for the bare pickles written by torch 1.5 and earlier. For bare
/// pickles, `load_torch` throws an error that explains what to do. Use this function to distinguish
/// the output of `torch.save` from safetensors files, because file extensions may be misleading.
/// Python: `torch.serialization._is_zipfile`.
/// @throw c10::Error, with the path in the message, if the file cannot be read or is not a regular
/// file.
bool is_torch_file(const std::filesystem::path& path);

/// Saves a value to a file that Python opens with `torch.load(path, weights_only=True)`. Supports
/// the same types as `load_torch`. Tensors on any device are saved as CPU tensors. Each tensor is
/// saved with its entire underlying storage, and tensors that share memory also share memory in the
/// file. The file becomes visible only once it is complete, and an existing file is replaced as in
/// `save_safetensors`. Python: `torch.save(value, path)`.
/// @throw c10::Error, with the path in the message, if a value cannot be saved or if writing fails.
/// If a value cannot be saved, the message contains its position, as in `['state'][0]`, and the
/// file is not modified.
void save_torch(const std::filesystem::path& path, const c10::IValue& value);

/// Loads a file saved by Python's `torch.save(module.state_dict(), path)`, for
/// `nn::load_state_dict`.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error in the same cases as `load_torch` and `as_state_dict`.
StateDict load_torch_state_dict(const std::filesystem::path& path, TorchFileOptions options = {});

/// Saves a state dict as a plain dict. Python: `torch.save(state, path)`.
/// @throw c10::Error in the same cases as the other overload of `save_torch`.
void save_torch(const std::filesystem::path& path, const StateDict& state);

/// Converts a dict, such as a dict nested in another value, to a state dict.
/// @throw c10::Error if the value is not a dict, a key is not a str, or a value is not a tensor.
/// If a key or value is invalid, the error message contains the key.
StateDict as_state_dict(const c10::IValue& value);

/// Converts a state dict to a dict that can be part of a larger value.
c10::IValue as_ivalue(const StateDict& state);

}  // namespace sconce::io
