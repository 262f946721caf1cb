#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// An entry whose shape in the state dict differs from its shape in the module.
struct SizeMismatch {
  std::string name = {};                              ///< dotted name in the module
  std::optional<std::vector<int64_t>> expected = {};  ///< shape in the module, if initialized
  std::vector<int64_t> found = {};                    ///< shape in the state dict
};

/// Lists, in order, the full dotted names of entries that differ between a state dict and a module.
/// Python: the return value of `module.load_state_dict`.
struct LoadReport {
  std::vector<std::string> missing_keys = {};     ///< in the module but missing from the state dict
  std::vector<std::string> unexpected_keys = {};  ///< in the state dict but not in the module
  std::vector<SizeMismatch> mismatched_keys = {};  ///< in both, but with different shapes
};

/// Options for `load_state_dict`.
struct LoadOptions {
  bool strict = true;  ///< whether to throw unless the report is empty; if false, loads all
                       ///< matching entries even if others have mismatched shapes, for which Python
                       ///< throws

  /// Function that maps a name in the state dict to a name in the module. If the function returns
  /// an empty string, the entry is skipped. If no function is set, names are used unchanged.
  std::function<std::string(const std::string&)> rename = {};
};

/// Returns the parameters and buffers of `module`, keyed by dotted names such as `fc1.weight`. The
/// tensors are detached and share memory with the module. Each module's parameters come first,
/// followed by the module's buffers and then its children's entries. A tensor with several names
/// (a shared tensor) is listed once, under its first name. Python: `module.state_dict()`, which
/// lists a shared tensor under each of its names.
[[nodiscard]] StateDict state_dict(const torch::nn::Module& module);

/// Copies parameters and buffers from `state` into `module`. If devices or types differ, values are
/// converted to match the module. Uninitialized lazy layers are initialized from the state dict.
/// For a shared tensor, the state dict needs only one of the tensor's names. As in Python, state
/// dicts from older PyTorch versions can still be loaded. If a BatchNorm's `num_batches_tracked` is
/// missing, the current value is kept. A tensor of shape `(1)` can be loaded into a 0-dim tensor.
/// All checks run before any tensor is written, so if the call throws, the module is unchanged.
/// Python: `module.load_state_dict(state, strict)`.
/// @throw c10::Error if:
/// - `strict` is set and entries are missing, unexpected, or mismatched; the message lists the
/// first ten of each kind and the number of remaining entries;
/// - `rename` maps two names in the state dict to the same name in the module;
/// - an entry has no values to copy, for example because it is undefined, not strided, or on the
/// meta device;
/// - LibTorch cannot convert an entry's values to the type of the module's tensor.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& state,
                           const LoadOptions& options = {});

}  // namespace sconce::nn
