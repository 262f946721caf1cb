#pragma once

// For the sources of this folder.

#include <torch/optim/optimizer.h>

#include <string>
#include <utility>
#include <vector>

namespace sconce::optim {

/// Returns the parameters in one group, without options.
/// @throw c10::ValueError if there are none.
inline std::vector<torch::optim::OptimizerParamGroup> one_group(const std::string& name,
                                                                std::vector<at::Tensor> params) {
  TORCH_CHECK_VALUE(!params.empty(), name, ": expected parameters, got an empty list; layers must ",
                    "be registered in their module");
  return {torch::optim::OptimizerParamGroup(std::move(params))};
}

}  // namespace sconce::optim
