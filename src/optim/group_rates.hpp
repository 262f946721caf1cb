#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "sconce/optim/param_state.hpp"

namespace sconce::optim {

/// The learning rates of an optimizer's groups, if they are tensors. A group's options repeat the
/// value of its tensor.
///
/// A program may change the list of groups at any time, by `param_groups()`. So a group is
/// recognized by its first parameter, and keeps its tensor, which a graph may read, even if the
/// group moves, or is removed and added again.
class GroupRates {
 public:
  /// Keeps the references. `given` becomes the tensor of the first group with its value.
  GroupRates(std::vector<torch::optim::OptimizerParamGroup>& groups,
             torch::optim::OptimizerOptions& defaults, at::Tensor given);

  /// Writes rates that were changed in the options into the tensors. The host reads nothing.
  void write();

  /// Does the same, and then reads the tensors that were changed into the options.
  void read();

  /// Does the same with all tensors, even if only a captured step changed them.
  void read_all();

  /// Writes all rates of the options into the tensors.
  void rewrite();

  /// Makes the defaults equal to the given tensor, so that an added group starts with its value.
  void read_defaults();

  /// Returns the tensor of a group, after `write`.
  const at::Tensor& of_group(size_t index) const { return rates_[index].tensor; }

 private:
  struct Rate {
    const void* first = nullptr;  // address of the first parameter of the group with this rate
    StateOwner owner = {};        // keeps that address from other tensors
    at::Tensor tensor = {};
    double written = std::numeric_limits<double>::quiet_NaN();  // equal in tensor and options
    int64_t version = 0;                                        // of the tensor then
  };
  void match();
  Rate new_rate(torch::optim::OptimizerParamGroup& group) const;
  void read_rate(size_t index);

  std::vector<torch::optim::OptimizerParamGroup>& groups_;
  torch::optim::OptimizerOptions& defaults_;
  at::Tensor given_;
  std::vector<Rate> rates_ = {};  // of the groups, then of removed ones
};

}  // namespace sconce::optim
