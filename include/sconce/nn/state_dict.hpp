#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// An entry whose shape in the state differs from its shape in the module.
struct SizeMismatch {
  std::string name = {};                              ///< dotted name in the module
  std::optional<std::vector<int64_t>> expected = {};  ///< in the module; none: uninitialized
  std::vector<int64_t> found = {};                    ///< shape in the state
};

/// The differences between a state and a module. Entries have full dotted names and come in order.
/// Python: the return value of `module.load_state_dict`.
struct LoadReport {
  std::vector<std::string> missing_keys = {};      ///< in the module but not in the state
  std::vector<std::string> unexpected_keys = {};   ///< in the state but not in the module
  std::vector<SizeMismatch> mismatched_keys = {};  ///< in both, with different shapes
};

/// Options of `load_state_dict`.
struct LoadOptions {
  bool strict = true;  ///< throw if the report is not empty; if false, load the other entries, also
                       ///< beside mismatched ones, for which Python throws

  /// Function that maps a name in the state to a name in the module. An empty result skips the
  /// entry. None: the names are the same.
  std::function<std::string(const std::string&)> rename = {};
};

/// Returns the parameters and buffers of the module by dotted name (`fc1.weight`). They are
/// detached and share the module's memory. The parameters of a layer come before its buffers, and
/// both come before those of its children. A tensor with several names is listed once, under its
/// first name.
/// Python: `module.state_dict()`, which lists such a tensor under each name.
[[nodiscard]] StateDict state_dict(const torch::nn::Module& module);

/// Copies the values of the state into the parameters and buffers of the module. Devices and types
/// may differ: values are converted. Uninitialized lazy layers are initialized from the state. If a
/// tensor has several names in the module, the state needs only one of them. As in Python, files of
/// old versions fit: a BatchNorm's `num_batches_tracked` may be missing and stays as it is, and one
/// value of shape `(1)` goes into a tensor without dimensions. Everything is checked before
/// anything is written, so a load that throws changes nothing. Python:
/// `module.load_state_dict(state, strict)`.
/// @throw c10::Error if:
/// - `strict` is set and an entry is missing, unexpected or mismatched; the text names the first
///   ten of each kind and has the number of the others;
/// - `rename` maps two names of the state to one name of the module;
/// - an entry has no values to copy, such as one that is undefined, not strided or on the meta
///   device;
/// - LibTorch cannot convert the values of an entry to the type of the module's tensor.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& state,
                           const LoadOptions& options = {});

}  // namespace sconce::nn
