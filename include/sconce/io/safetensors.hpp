#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <filesystem>
#include <map>
#include <string>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// Strings stored in a safetensors file along with its tensors, such as `{"format": "pt"}`.
using Metadata = std::map<std::string, std::string>;

/// Options for `load_safetensors`.
struct SafetensorsOptions {
  torch::Device device = c10::kCPU;  ///< device of the loaded tensors

  /// Whether to map the file into memory instead of reading it. With this option, CPU tensors are
  /// views of the file's pages, which are loaded on first access. Changes to the tensors are not
  /// written to the file. The file must not be truncated while a mapped tensor exists. Replacing
  /// the file with a new file, as `save_safetensors` does, does not affect mapped tensors.
  bool mmap = true;

  /// Whether rows of mapped tensors are read in random order, for example by `data::Batches` with
  /// `shuffle` set. With this option, the system reads only the accessed pages. Without this
  /// option, the system reads several megabytes around each accessed page, and shuffling a file
  /// that is larger than memory is many times slower. This option makes sequential reads slower.
  /// Requires `mmap` and a CPU device.
  /// Python: `mmap.madvise(mmap.MADV_RANDOM)`.
  bool random_access = false;
};

/// Saves tensors on any device and with any strides. The file is byte-for-byte identical to the
/// output of Python's `save_file` for contiguous copies of the same tensors. Tensors that share
/// memory are each written in full. The file becomes visible only once it is complete: it is
/// written next to the final path, synced, and renamed. An existing file keeps its permissions, as
/// well as its owner and group if the current user is allowed to set them. A symbolic link remains
/// a link, even if its target does not exist yet.
/// Python: `safetensors.torch.save_file(tensors, path, metadata)`.
/// @throw c10::Error, with the path and the entry or cause in the message, if:
/// - a tensor is undefined, not strided, or of a type that the format does not support (complex128,
///   quantized);
/// - a 0-dim tensor has a packed 4-bit type;
/// - a name or metadata string is not UTF-8, or a name is "__metadata__";
/// - the current user cannot write to the existing file, or writing fails.
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata = {});

/// Loads the tensors in a file, ordered by their position in the file.
/// Python: `safetensors.torch.load_file(path, device)`.
/// @throw c10::Error, with the path and the entry or offset in the message, if:
/// - the file violates the format or contains a type that LibTorch does not support (F6);
/// - `random_access` is set without `mmap` or for a device other than the CPU.
///
/// These checks run before memory is allocated for tensors.
StateDict load_safetensors(const std::filesystem::path& path, SafetensorsOptions options = {});

/// Reads only the metadata of a file. Returns an empty map if the file does not contain metadata.
/// Python: `safe_open(path, "pt").metadata()`.
/// @throw c10::Error in the same cases as `load_safetensors`.
Metadata load_safetensors_metadata(const std::filesystem::path& path);

}  // namespace sconce::io
