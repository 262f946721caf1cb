#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// An entry whose sizes in a state are not those that the module has.
struct SizeMismatch {
  std::string name = {};
  std::optional<std::vector<int64_t>> expected = {};  ///< none: an uninitialized lazy layer's
  std::vector<int64_t> found = {};                    ///< in the state
};

/// What `load_state_dict` found, by full dotted names in their order. Python: what
/// `module.load_state_dict` returns.
struct LoadReport {
  std::vector<std::string> missing = {};      ///< in the module, and not in the state
  std::vector<std::string> unexpected = {};   ///< in the state, and not in the module
  std::vector<SizeMismatch> mismatched = {};  ///< in both, with other sizes
};

/// How `load_state_dict` takes a state.
struct LoadOptions {
  bool strict = true;  ///< throws where the report is not empty; else the rest is loaded

  /// The module's name of each of the state's; an empty one leaves the entry out. None: the same.
  std::function<std::string(const std::string&)> rename = {};
};

/// Returns the module's parameters and buffers by dotted names (`fc1.weight`), detached and sharing
/// their memory, a layer's parameters before its buffers and both before its children's. A tensor
/// that stands under several names is there under the first alone.
/// Python: `module.state_dict()`, which names such a tensor each time.
[[nodiscard]] StateDict state_dict(const torch::nn::Module& module);

/// Copies the state's values into the module's parameters and buffers, on whatever devices and of
/// whatever types they are; uninitialized lazy layers become what the state says. Everything is
/// checked before anything is written, so a load that throws changes nothing. Of several names of
/// one tensor the state needs one. Python: `module.load_state_dict(state, strict)`.
/// @throw c10::Error naming every missing, unexpected and mismatched entry, if strict; if two of
/// the state's names become one of the module's, or an entry has no values to copy, or
/// values of a type that LibTorch does not convert to the module's.
LoadReport load_state_dict(torch::nn::Module& module, const StateDict& state,
                           const LoadOptions& options = {});

}  // namespace sconce::nn
