#pragma once

// Functions that write and read optimizer state dicts.

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "state/state_visitor.hpp"

namespace sconce::optim {

/// Defines how an optimizer class writes and reads the parts of its state dicts.
class OptimizerDictForm {
 public:
  using Options = torch::optim::OptimizerOptions;
  using ParamState = torch::optim::OptimizerParamState;
  using Parameters = std::vector<at::Tensor>;

  virtual ~OptimizerDictForm() = default;

  /// Writes or reads everything that the dict stores for a group, except the indices of its
  /// parameters.
  virtual void visit_group(size_t index, Options& options, StateVisitor& group) = 0;

  /// @throw c10::Error if the loaded options are invalid.
  virtual void check(const Options& options) const = 0;

  /// Returns the state of a parameter, or std::nullopt if the dict omits it.
  virtual std::optional<c10::impl::GenericDict> write_state(const ParamState& state,
                                                            const Options& options) const = 0;

  /// Reads the state of parameter `index` in a group from its dict and returns it.
  virtual std::unique_ptr<ParamState> read_state(const c10::IValue& dict,
                                                 const Parameters& parameters, size_t index,
                                                 const Options& options) const = 0;

  /// Returns whether a step needs the state of every parameter.
  virtual bool needs_every_state() const { return false; }
};

/// Returns [{..., "params": [index]}], with the options of each group.
c10::IValue write_groups(const torch::optim::Optimizer& optimizer, OptimizerDictForm& form);

/// Returns {"state": {index: state}, "param_groups": [{..., "params": [index]}]}.
c10::IValue write_optimizer(const torch::optim::Optimizer& optimizer, OptimizerDictForm& form);

/// The contents of an optimizer state dict: the options for each group, and the states.
struct OptimizerContents {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options = {};
  ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>> states = {};
};

/// Reads a dict that was written by `write_optimizer` or by Python. Does not modify the optimizer.
/// @throw c10::Error with the prefix `where` if the dict does not fit the optimizer.
OptimizerContents read_optimizer(const torch::optim::Optimizer& optimizer, const c10::IValue& dict,
                                 const std::string& where, OptimizerDictForm& form);

}  // namespace sconce::optim
