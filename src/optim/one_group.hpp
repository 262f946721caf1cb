#pragma once

// This is an internal header of src/optim.

#include <torch/optim/optimizer.h>

#include <string>
#include <utility>
#include <vector>

#include "sconce/optim/decay_groups.hpp"

namespace sconce::optim {

/// Returns the parameters as a single group without options.
/// @throw c10::ValueError if there are no parameters.
inline std::vector<torch::optim::OptimizerParamGroup> one_group(const std::string& name,
                                                                std::vector<at::Tensor> params) {
  TORCH_CHECK_VALUE(!params.empty(), name,
                    ": expected parameters, got an empty list; register each layer in its module");
  return {torch::optim::OptimizerParamGroup(std::move(params))};
}

/// Returns the groups without options.
inline std::vector<torch::optim::OptimizerParamGroup> param_groups_of(const DecayGroups& groups) {
  std::vector<torch::optim::OptimizerParamGroup> all;
  for (const auto& group : groups.groups) all.emplace_back(group.params);
  return all;
}

}  // namespace sconce::optim
