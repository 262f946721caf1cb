#include "sconce/nn/requires_grad.hpp"

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace sconce::nn {

torch::nn::Module& requires_grad_(torch::nn::Module& module, bool requires_grad) {
  const auto parameters = module.named_parameters();
  for (const auto& item : parameters) {
    const auto& parameter = item.value();
    TORCH_CHECK(!requires_grad || parameter.requires_grad() || parameter.is_floating_point() ||
                    parameter.is_complex(),
                "sconce::nn::requires_grad_: expected parameters of a floating-point or complex "
                "type, got '",
                item.key(), "' of type ", parameter.scalar_type());
  }
  for (const auto& item : parameters) item.value().set_requires_grad(requires_grad);
  return module;
}

}  // namespace sconce::nn
