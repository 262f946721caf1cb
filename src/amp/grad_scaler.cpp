#include "sconce/amp/grad_scaler.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "host_call.hpp"
#include "optim/group_condition.hpp"
#include "sconce/devices.hpp"
#include "sconce/optim/amp_scaling.hpp"
#include "state/state_visitor.hpp"
#include "tensor_groups.hpp"
#include "to_device.hpp"

namespace sconce::amp {

namespace {

// The values in a state dict. The `init_scale` option corresponds to `scale`.
struct ScalerState {
  GradScalerOptions options = {};
  int64_t growth_tracker = 0;
};

void visit_state(ScalerState& scaler, StateVisitor& state) {
  state("scale", scaler.options.init_scale);
  state.check(std::abs(scaler.options.init_scale) <= std::numeric_limits<float>::max(),
              "in the range of float32");
  state("growth_factor", scaler.options.growth_factor);
  state("backoff_factor", scaler.options.backoff_factor);
  state.count("growth_interval", scaler.options.growth_interval);
  state.count("_growth_tracker", scaler.growth_tracker);
  state.check(std::in_range<int32_t>(scaler.growth_tracker), "below 2^31");
}

// Replays do not track which optimizers were stepped or which optimizers' gradients were unscaled.
constexpr auto without_update =
    "sconce::amp::GradScaler::unscale_ or step without a call to update in the same captured step";

enum class Float16Gradients { refused, accepted };

// Returns the values of a sparse gradient, or the gradient itself if it is dense.
torch::Tensor values_of(const torch::Tensor& parameter) {
  if (!parameter.grad().is_sparse()) return parameter.grad();
  if (parameter.grad().scalar_type() == c10::kHalf) {
    // Adding entries with the same index may overflow float16, so the check must use their sums.
    parameter.mutable_grad() = parameter.grad().coalesce();
  }
  return parameter.grad()._values();
}

TensorGroups gradients_of(torch::optim::Optimizer& optimizer, Float16Gradients float16) {
  const at::NoGradGuard no_grad;
  TensorGroups gradients;
  SeenTensors seen;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto* gradient = parameter.grad().unsafeGetTensorImpl();
      if (!parameter.grad().defined() || !seen.insert(gradient).second) continue;
      TORCH_CHECK_VALUE(
          float16 == Float16Gradients::accepted || parameter.grad().scalar_type() != c10::kHalf,
          "sconce::amp::GradScaler::unscale_: expected gradients with more precision than float16, "
          "because dividing float16 gradients by the scale loses precision; keep the parameters in "
          "float32");
      TORCH_CHECK_VALUE(!parameter.is_cuda() || parameter.grad().scalar_type() != c10::kBFloat16,
                        "sconce::amp::GradScaler: expected no bfloat16 gradients on a GPU, because "
                        "LibTorch has no kernel to unscale them; keep the parameters in float32, "
                        "or do not use a scaler");
      add_to_group(gradients, values_of(parameter));
    }
  }
  return gradients;
}

// Multiplies the gradients by inv_scale. For each group, returns a tensor that indicates whether
// any gradient in the group contains inf or NaN.
std::vector<torch::Tensor> multiply_and_check(const TensorGroups& gradients,
                                              const torch::Tensor& inv_scale) {
  const at::NoGradGuard no_grad;
  std::vector<torch::Tensor> found_infs;
  for (const auto& values : gradients) {
    const auto device = values.front().device();
    auto found_inf = at::zeros({}, inv_scale.options().device(device));
    at::_amp_foreach_non_finite_check_and_unscale_(values, found_inf, to_device(inv_scale, device));
    found_infs.push_back(found_inf);
  }
  return found_infs;
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options) {
  if (options_.enabled && options_.device == c10::kCUDA && num_gpus() == 0) {
    TORCH_WARN("sconce::amp::GradScaler: CUDA is not available. Disabling the scaler.");
    options_.enabled = false;
  }
  if (!options_.enabled) return;
  TORCH_CHECK(options_.growth_factor > 1.0,
              "sconce::amp::GradScaler: expected growth_factor > 1, got ", options_.growth_factor);
  TORCH_CHECK(options_.backoff_factor < 1.0,
              "sconce::amp::GradScaler: expected backoff_factor < 1, got ",
              options_.backoff_factor);
}

torch::Tensor GradScaler::scale(const torch::Tensor& outputs) {
  if (!is_enabled()) return outputs;
  if (!scale_.defined()) {
    scale_ =
        at::full({}, options_.init_scale, at::TensorOptions(outputs.device()).dtype(c10::kFloat));
    growth_tracker_ = at::full({}, init_growth_tracker_, scale_.options().dtype(c10::kInt));
  }
  return outputs * to_device(scale_, outputs.device());
}

std::vector<torch::Tensor> GradScaler::scale(const std::vector<torch::Tensor>& outputs) {
  std::vector<torch::Tensor> scaled;
  scaled.reserve(outputs.size());
  for (const auto& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

GradScaler::OptimizerState& GradScaler::state_of(const torch::optim::Optimizer& optimizer,
                                                 const char* caller) {
  TORCH_CHECK(scale_.defined(), "sconce::amp::GradScaler::", caller,
              ": expected a call to scale(loss) earlier in the iteration");
  detail::CaptureScope::check_at_end(this, [this] {
    if (!states_.empty()) detail::check_not_capturing(without_update);
  });
  return states_[&optimizer];
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  auto& state = state_of(optimizer, "unscale_");
  TORCH_CHECK(state.stage != Stage::unscaled,
              "sconce::amp::GradScaler::unscale_: expected one call per optimizer between updates; "
              "unscale_ has already been called for this optimizer");
  TORCH_CHECK(state.stage != Stage::stepped,
              "sconce::amp::GradScaler::unscale_: expected a call before step; this optimizer has "
              "already stepped since the last update");
  unscale(optimizer, state);
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer, OptimizerState& state) {
  optim::depend_on_groups(optimizer);
  const auto inv_scale = scale_.to(c10::kDouble).reciprocal().to(c10::kFloat);
  state.found_infs =
      multiply_and_check(gradients_of(optimizer, Float16Gradients::refused), inv_scale);
  state.stage = Stage::unscaled;
}

torch::Tensor GradScaler::combined(const std::vector<torch::Tensor>& found_infs) const {
  // The fused kernels skip a step only if found_inf is exactly 1, so found_inf values from several
  // devices must not be summed.
  if (found_infs.empty()) return at::zeros({}, scale_.options());
  auto found_inf = to_device(found_infs.front(), scale_.device());
  for (size_t i = 1; i < found_infs.size(); ++i) {
    found_inf = at::maximum(found_inf, to_device(found_infs[i], scale_.device()));
  }
  return found_inf;
}

torch::Tensor GradScaler::step(torch::optim::Optimizer& optimizer,
                               std::function<torch::Tensor()> closure) {
  if (!is_enabled()) return optimizer.step(std::move(closure));
  TORCH_CHECK(closure == nullptr,
              "sconce::amp::GradScaler::step: expected no closure, because an enabled scaler does "
              "not support closures");
  auto& state = state_of(optimizer, "step");
  TORCH_CHECK(state.stage != Stage::stepped,
              "sconce::amp::GradScaler::step: expected one call "
              "per optimizer between updates; step has already been called for this optimizer");
  torch::Tensor result;
  auto* amp_scaling = dynamic_cast<optim::AmpScaling*>(&optimizer);
  if (amp_scaling != nullptr && amp_scaling->step_supports_amp_scaling()) {
    step_in_kernels(*amp_scaling, optimizer, state);
  } else {
    result = step_from_host(optimizer, state);
  }
  state.stage = Stage::stepped;
  return result;
}

void GradScaler::step_in_kernels(optim::AmpScaling& amp_scaling, torch::optim::Optimizer& optimizer,
                                 OptimizerState& state) {
  const auto gradients = gradients_of(optimizer, Float16Gradients::accepted);
  torch::Tensor grad_scale;
  if (state.stage == Stage::ready) {
    grad_scale = scale_;
    state.found_infs = multiply_and_check(gradients, at::ones({}, scale_.options()));
  }
  TORCH_CHECK(gradients.empty() || !state.found_infs.empty(),
              "sconce::amp::GradScaler::step: expected gradients checked for inf, but unscale_ was "
              "called before any gradients existed");
  amp_scaling.step_with_amp_scaling(grad_scale, combined(state.found_infs));
}

torch::Tensor GradScaler::step_from_host(torch::optim::Optimizer& optimizer,
                                         OptimizerState& state) {
  if (state.stage == Stage::ready) unscale(optimizer, state);
  TORCH_CHECK(!state.found_infs.empty(),
              "sconce::amp::GradScaler::step: expected a gradient to "
              "check for inf, but none of the optimizer's parameters has a gradient");
  return combined(state.found_infs).is_nonzero() ? torch::Tensor() : optimizer.step();
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!is_enabled()) return;
  TORCH_CHECK(
      scale_.defined(),
      "sconce::amp::GradScaler::update: expected a call to scale(loss) earlier in the iteration");
  if (new_scale) {
    scale_.fill_(*new_scale);
  } else {
    std::vector<torch::Tensor> found_infs;
    for (const auto& [optimizer, state] : states_) {
      found_infs.insert(found_infs.end(), state.found_infs.begin(), state.found_infs.end());
    }
    TORCH_CHECK(!found_infs.empty(),
                "sconce::amp::GradScaler::update: expected unscale_ or step "
                "to have checked gradients for inf since the last update");
    depend_on_options();
    at::_amp_update_scale_(scale_, growth_tracker_, combined(found_infs), options_.growth_factor,
                           options_.backoff_factor, options_.growth_interval);
  }
  states_.clear();
}

// Replays use the kernel arguments from the capture, so the options must not change.
void GradScaler::depend_on_options() const {
  if (!detail::is_capturing()) return;
  const auto numbers = [this] {
    return std::tuple(options_.growth_factor, options_.backoff_factor, options_.growth_interval);
  };
  detail::depend_on(this, [numbers, captured = numbers()] { return numbers() == captured; });
}

double GradScaler::get_scale() const {
  if (!is_enabled()) return 1.0;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

c10::IValue GradScaler::state_dict() const {
  if (!is_enabled()) return string_dict();
  ScalerState state = {
      options_, growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : init_growth_tracker_};
  state.options.init_scale = get_scale();
  return as_state(state);
}

void GradScaler::load_state_dict(const c10::IValue& state) {
  if (!is_enabled()) return;
  const std::string where = "sconce::amp::GradScaler::load_state_dict";
  detail::check_not_capturing(where);
  TORCH_CHECK(
      !state.isGenericDict() || !state.toGenericDict().empty(), where,
      ": expected the state of an enabled scaler, got the empty state of a disabled scaler");
  const auto loaded = from_state<ScalerState>(state, where, {options_, 0});
  options_ = loaded.options;
  init_growth_tracker_ = loaded.growth_tracker;
  if (scale_.defined()) {
    scale_.fill_(options_.init_scale);
    growth_tracker_.fill_(init_growth_tracker_);
  }
}

}  // namespace sconce::amp
