#include "sconce/training/terminate_on_nan.hpp"

#include <ATen/ops/isfinite.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>

#include "sconce/repr.hpp"

namespace sconce {

namespace {

// Returns a description of the first non-finite parameter.
std::string describe_parameters(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    const bool is_read = parameter.value().defined();
    if (is_read && !at::isfinite(parameter.value().detach()).all().item<bool>()) {
      return "the first non-finite parameter is " + parameter.key();
    }
  }
  return "all parameters are finite";
}

}  // namespace

void TerminateOnNaN::on_epoch_end(Fit& fit) {
  const double loss = fit.epochs.back().loss;
  if (!std::isfinite(loss)) {
    fit.stop("loss is " + repr(loss) + ", and " + describe_parameters(fit.model));
  }
}

}  // namespace sconce
