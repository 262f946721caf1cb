#pragma once

#include <ATen/core/ivalue.h>
#include <torch/ordered_dict.h>

#include <filesystem>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// How `load_torch` and `load_torch_state_dict` read.
struct TorchFileOptions {
  torch::Device device = c10::kCPU;  ///< where tensors are to be, wherever they were saved from

  /// Refuses a file that was written without checksums, of which nobody can say if it is damaged.
  bool require_checksums = false;
};

/// Reads what Python's `torch.save` wrote of state dicts: None, bool, int, float, str, lists,
/// tuples (torch.Size too), dicts with keys of str or int (OrderedDict and Counter too, without
/// their attributes) and strided tensors (Parameters too), which share memory as they did. Any
/// other type is refused, and no code of the file ever runs. The checksum of every
/// record is compared, unless they are all 0, as after `set_crc32_options(False)`.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error naming the path and the record or byte: if it is no such archive (TorchScript
/// and files of before torch 1.6 are not), or is damaged; if a type is none of these; if containers
/// nest deeper than 1000 or hold themselves, or tensors have more than 64 dimensions.
c10::IValue load_torch(const std::filesystem::path& path, TorchFileOptions options = {});

/// Writes a file that Python's `torch.load(path, weights_only=True)` opens, of the types that
/// `load_torch` reads. Tensors of any device are saved as of the CPU, with the whole of the memory
/// that they view; those that share it share it there. The file is whole or not there, and
/// one that was there is replaced as `save_safetensors` does it. Python: `torch.save(value, path)`.
/// @throw c10::Error naming the path and, as in `['state'][0]`, the place of a value that cannot be
/// saved, before the file is touched; if writing fails.
void save_torch(const std::filesystem::path& path, const c10::IValue& value);

/// Reads what Python's `torch.save(module.state_dict(), path)` wrote, for `nn::load_state_dict`.
/// Python: `torch.load(path, map_location=device, weights_only=True)`.
/// @throw c10::Error as `load_torch`, and naming the key that is not a str or has no tensor.
StateDict load_torch_state_dict(const std::filesystem::path& path, TorchFileOptions options = {});

/// Writes a state dict as `save_torch` writes a dict. Python: `torch.save(state, path)`.
void save_torch(const std::filesystem::path& path, const StateDict& state);

/// Returns the tensors of a dict that stands in a larger value.
/// @throw c10::Error if it is no dict, or naming the key that is not a str or has no tensor.
StateDict as_state_dict(const c10::IValue& value);

/// Returns a dict of the tensors, for a larger value.
c10::IValue as_ivalue(const StateDict& state);

}  // namespace sconce::io
