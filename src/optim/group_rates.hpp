#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "sconce/optim/param_state.hpp"

namespace sconce::optim {

/// The learning rates for an optimizer's groups, if they are tensors. Each group's options mirror
/// the value of the group's tensor.
///
/// A program may change the list of groups at any time through `param_groups()`. Therefore, a group
/// is identified by its first parameter. The group keeps its tensor, which a CUDA graph may read,
/// even if the group moves or is removed and added again.
class GroupRates {
 public:
  /// Stores references to the arguments. `given` becomes the tensor of the first group with the
  /// same value.
  GroupRates(std::vector<torch::optim::OptimizerParamGroup>& groups,
             torch::optim::OptimizerOptions& defaults, at::Tensor given);

  /// Writes rates that changed in the options to the tensors. Does not read tensors on the host.
  void write();

  /// Calls `write`, and then copies the values of changed tensors to the options.
  void read();

  /// Like `read`, but reads all tensors, including tensors that were changed only by a captured
  /// step.
  void read_all();

  /// Writes all rates from the options to the tensors.
  void rewrite();

  /// Sets the defaults to the given tensor's value, so that an added group starts with it.
  void read_defaults();

  /// Returns a group's tensor. `write` must be called first.
  const at::Tensor& group_tensor(size_t index) const { return rates_[index].tensor; }

 private:
  struct Rate {
    const void* first = nullptr;  // address of the first parameter in the group
    StateOwner owner = {};        // prevents reuse of this address
    at::Tensor tensor = {};
    double written = std::numeric_limits<double>::quiet_NaN();  // value in both tensor and options
    int64_t version = 0;                                        // the tensor's version at that time
  };
  void match();
  Rate new_rate(torch::optim::OptimizerParamGroup& group) const;
  void read_rate(size_t index);

  std::vector<torch::optim::OptimizerParamGroup>& groups_;
  torch::optim::OptimizerOptions& defaults_;
  at::Tensor original_lr_;
  std::vector<Rate> rates_ = {};  // for current groups, then for removed groups
};

}  // namespace sconce::optim
