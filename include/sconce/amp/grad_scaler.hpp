#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {
class AmpScaling;
}  // namespace sconce::optim

namespace sconce {
class RunScope;  // in src/
}  // namespace sconce

namespace sconce::amp {

/// Options of `GradScaler`: the arguments of `torch.amp.GradScaler` with Python's names and
/// defaults.
struct GradScalerOptions {
  torch::DeviceType device = torch::DeviceType::CUDA;  ///< device type of the losses
  double init_scale = 65536.0;                         ///< scale before the first update
  double growth_factor = 2.0;   ///< factor of the scale after growth_interval good steps; above 1
  double backoff_factor = 0.5;  ///< factor of the scale after inf or nan; below 1
  int64_t growth_interval = 2000;  ///< number of consecutive updates without inf or nan
  bool enabled = true;             ///< false leaves losses and gradients unchanged
};

/// Keeps small gradients in float16 from becoming 0. It multiplies the loss by a scale, divides the
/// gradients by it, skips steps whose gradients contain inf or nan, and adapts the scale. A step is
/// `scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update();`. Call
/// `scaler.unscale_(optimizer)` before `step` if you clip gradients.
///
/// The scale is on the device of the first tensor that is scaled. Gradients may be on several
/// devices, have several types, and be sparse. A step of an optimizer that supports
/// `sconce::optim::AmpScaling` needs no host read; for any other optimizer the host reads once
/// whether to skip the step. Without CUDA a scaler for GPUs warns and is disabled: it returns
/// tensors unchanged, and `step` only steps the optimizer. From `unscale_` or `step` to `update` an
/// optimizer must live, and one of LibTorch's must not be moved. Python: `torch.amp.GradScaler`.
class GradScaler {
 public:
  /// @throw c10::Error if it is enabled and growth_factor <= 1 or backoff_factor >= 1.
  explicit GradScaler(GradScalerOptions options = {});
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;
  GradScaler(GradScaler&&) = default;
  GradScaler& operator=(GradScaler&&) = default;

  /// Returns the tensor, of any shape and on any device, times the scale.
  [[nodiscard]] torch::Tensor scale(const torch::Tensor& outputs);
  /// Returns each tensor times the scale, on the tensor's own device.
  [[nodiscard]] std::vector<torch::Tensor> scale(const std::vector<torch::Tensor>& outputs);

  /// Divides the gradients of the optimizer's parameters by the scale, in place, and records on the
  /// device whether one is inf or nan. Call it once in each step, after all backward passes.
  /// @throw c10::Error before the first `scale`, after `step`, or in a second call before `update`.
  /// @throw c10::ValueError if a gradient is float16, or bfloat16 on a GPU; no gradient has
  /// changed.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// Unscales the gradients unless `unscale_` has done it, and steps the optimizer unless a
  /// gradient is inf or nan. Returns the result of the optimizer's step, or an undefined tensor if
  /// the step is skipped. An optimizer that supports `AmpScaling` does both in its kernels.
  /// @throw c10::Error if:
  /// - it is called before the first `scale`, or twice before `update`;
  /// - the scaler is enabled and there is a `closure`;
  /// - the optimizer does not support `AmpScaling`, and no parameter has a gradient or `unscale_`
  ///   throws.
  /// @throw c10::ValueError if a gradient is bfloat16 on a GPU.
  torch::Tensor step(torch::optim::Optimizer& optimizer,
                     std::function<torch::Tensor()> closure = nullptr);

  /// Ends the iteration. Multiplies the scale by backoff_factor if gradients contained inf or nan,
  /// and by growth_factor after growth_interval updates without them; or sets it to `new_scale`.
  /// The host reads nothing.
  /// @throw c10::Error before the first `scale`, or without `new_scale` if no gradient has been
  /// checked since the last update.
  void update(std::optional<double> new_scale = {});

  /// Returns the scale, or 1 if the scaler is disabled. The host reads it from the device.
  double get_scale() const;
  /// Returns whether it scales. Always false for a scaler for GPUs without CUDA.
  bool is_enabled() const { return options_.enabled; }

  /// Returns the factor by which `update` raises the scale.
  double get_growth_factor() const { return options_.growth_factor; }
  /// Sets the factor by which `update` raises the scale. It is not checked, as in Python.
  void set_growth_factor(double new_factor) { options_.growth_factor = new_factor; }
  /// Returns the factor by which `update` lowers the scale.
  double get_backoff_factor() const { return options_.backoff_factor; }
  /// Sets the factor by which `update` lowers the scale. It is not checked, as in Python.
  void set_backoff_factor(double new_factor) { options_.backoff_factor = new_factor; }
  /// Returns the number of consecutive updates without inf or nan that raise the scale.
  int64_t get_growth_interval() const { return options_.growth_interval; }
  /// Sets the number of consecutive updates without inf or nan that raise the scale.
  void set_growth_interval(int64_t new_interval) { options_.growth_interval = new_interval; }

  /// Returns a dict with Python's keys: "scale", "growth_factor", "backoff_factor",
  /// "growth_interval" and "_growth_tracker", the number of updates without inf or nan since the
  /// last change of the scale. It is empty if the scaler is disabled. Call it after `update`. The
  /// host reads two values.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Restores the state of a dict from `state_dict`, or from Python. Does nothing if the scaler is
  /// disabled.
  /// @throw c10::Error if the dict is empty, as that of a disabled scaler is, lacks a key, or has
  /// an invalid value; the scaler has not changed.
  void load_state_dict(const c10::IValue& state);

 private:
  friend class sconce::RunScope;

  enum class Stage { ready, unscaled, stepped };
  struct OptimizerState {
    Stage stage = Stage::ready;
    std::vector<torch::Tensor> found_infs = {};  // one per device with gradients; 1 if inf or nan
  };

  // Forgets an iteration that an exception has ended before its update.
  void forget_iteration() { states_.clear(); }
  OptimizerState& state_of(const torch::optim::Optimizer& optimizer, const char* who);
  void unscale(torch::optim::Optimizer& optimizer, OptimizerState& state);
  void step_in_kernels(optim::AmpScaling& amp_scaling, torch::optim::Optimizer& optimizer,
                       OptimizerState& state);
  torch::Tensor step_from_host(torch::optim::Optimizer& optimizer, OptimizerState& state);
  void depend_on_options() const;
  torch::Tensor combined(const std::vector<torch::Tensor>& found_infs) const;

  GradScalerOptions options_;  // init_scale and the factors are the loaded ones after a load
  int64_t init_growth_tracker_ = 0;
  torch::Tensor scale_;  // float32 () on the device of the first tensor scaled, else undefined
  torch::Tensor growth_tracker_;  // int32 (), made with scale_
  std::unordered_map<const torch::optim::Optimizer*, OptimizerState> states_;
  int runs_ = 0;  // number of fits under way that use this object
};

}  // namespace sconce::amp
