#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <filesystem>
#include <map>
#include <string>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// Texts stored in a safetensors file beside its tensors, such as `{"format": "pt"}`.
using Metadata = std::map<std::string, std::string>;

/// Options of `load_safetensors`.
struct SafetensorsOptions {
  torch::Device device = c10::kCPU;  ///< device of the loaded tensors

  /// Whether to map the file instead of reading it. A tensor on the CPU is then a view of the pages
  /// of the file, which are read when first touched. Changes to it stay in memory. The file must
  /// not be shortened while such a tensor lives. Replacing it, as `save_safetensors` does, is safe.
  bool mmap = true;

  /// Whether the rows of mapped tensors are read in random order, as by `data::Batches` with
  /// `shuffle`. The system then reads only the pages that are touched. Otherwise it reads several
  /// megabytes around each, so that shuffling a file larger than the memory takes many times as
  /// long. Reading in order is slower with it. Requires `mmap` and the CPU.
  /// Python: `mmap.madvise(mmap.MADV_RANDOM)`.
  bool random_access = false;
};

/// Writes tensors of any device and strides. The bytes are those that Python's `save_file` writes
/// for the same tensors made contiguous. Tensors that share memory are each written in full.
/// The file appears complete or not at all: it is written beside the path, synced and renamed. An
/// existing file keeps its permissions, and its owner and group as far as this user may set them. A
/// symbolic link stays a link, even if its target does not exist yet.
/// Python: `safetensors.torch.save_file(tensors, path, metadata)`.
/// @throw c10::Error, naming the path and the entry or cause, if:
/// - a tensor is undefined, not strided or of a type that the format lacks (complex128, quantized);
/// - a tensor of 4-bit pairs has no dimension;
/// - a name or metadata text is not UTF-8, or a name is "__metadata__";
/// - this user may not write the existing file, or writing fails.
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata = {});

/// Reads the tensors of a file, in the order of their bytes.
/// Python: `safetensors.torch.load_file(path, device)`.
/// @throw c10::Error, naming the path and the entry or offset, if the file breaks a rule of the
/// format or has a type that LibTorch lacks (F6), or if an option excludes another. This is checked
/// before memory is allocated for tensors.
StateDict load_safetensors(const std::filesystem::path& path, SafetensorsOptions options = {});

/// Reads only the texts of a file. Returns an empty map if there are none.
/// Python: `safe_open(path, "pt").metadata()`.
/// @throw c10::Error under the same conditions as load_safetensors.
Metadata load_safetensors_metadata(const std::filesystem::path& path);

}  // namespace sconce::io
