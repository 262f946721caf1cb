#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <filesystem>
#include <map>
#include <string>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// The texts that a safetensors file holds beside its tensors, such as `{"format": "pt"}`.
using Metadata = std::map<std::string, std::string>;

/// How `load_safetensors` reads.
struct SafetensorsOptions {
  torch::Device device = c10::kCPU;  ///< where the tensors are to be

  /// Maps the file instead of reading it: a tensor on the CPU is a view of the file's pages, which
  /// come when it is first touched. Changes to it stay in memory. The file must not be shortened
  /// while such a tensor lives; replacing it, as `save_safetensors` does, is safe.
  bool mmap = true;
};

/// Writes tensors of any device and strides, in the bytes that Python's `save_file` writes of them
/// contiguous. The file is whole or not there: it is written beside, synced and renamed; a file
/// that was there keeps its permissions, and owner and group as far as this user may give them, and
/// a link stays one, also to what is not there yet. Tensors that share memory are written each.
/// Python: `safetensors.torch.save_file(tensors, path, metadata)`.
/// @throw c10::Error naming the path and the entry or cause: if a tensor is undefined, not strided
/// or of a type that the format has not (complex128, quantized); if one of 4-bit pairs has no
/// dimension; if a name is not UTF-8 or is "__metadata__"; if this user may not write the file that
/// is there; if writing fails.
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata = {});

/// Reads the tensors of a file, in the order in which they lie in it.
/// Python: `safetensors.torch.load_file(path, device)`.
/// @throw c10::Error naming the path and the entry or offset if the file breaks any rule of the
/// format, before any memory is taken for tensors; if it has a type that LibTorch has not (F6).
StateDict load_safetensors(const std::filesystem::path& path, SafetensorsOptions options = {});

/// Reads the texts of a file and none of its tensors; empty where there are none.
/// Python: `safe_open(path, "pt").metadata()`.
/// @throw c10::Error as load_safetensors.
Metadata load_safetensors_metadata(const std::filesystem::path& path);

}  // namespace sconce::io
