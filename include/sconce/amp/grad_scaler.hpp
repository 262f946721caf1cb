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

/// Options for `GradScaler`. Names and defaults match the arguments of `torch.amp.GradScaler`.
struct GradScalerOptions {
  torch::DeviceType device = torch::DeviceType::CUDA;  ///< device type of the losses
  double init_scale = 65536.0;                         ///< initial scale
  double growth_factor = 2.0;   ///< multiplies the scale after `growth_interval` finite steps; must
                                ///< exceed 1
  double backoff_factor = 0.5;  ///< multiplies the scale after a step with inf or NaN; must be
                                ///< below 1
  int64_t growth_interval = 2000;  ///< consecutive updates without inf or NaN before the scale
                                   ///< grows
  bool enabled = true;             ///< `false` leaves losses and gradients unchanged
};

/// Scales losses so that small float16 gradients do not underflow to 0. The scaler multiplies the
/// loss by a scale, divides the gradients by the same scale, skips steps whose gradients contain
/// inf or NaN, and adjusts the scale.
///
///     amp::GradScaler scaler;
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);  // only if you clip gradients before the step
///     scaler.step(optimizer);
///     scaler.update();
///
/// The scale is stored on the device of the first tensor passed to `scale`. Gradients may be on
/// several devices, have different types, or be sparse. Stepping an optimizer that supports
/// `sconce::optim::AmpScaling` does not read from the device. For any other optimizer, each step
/// reads one value from the device to decide whether to skip the step.
///
/// If the device type is CUDA and CUDA is not available, the scaler warns and is disabled: `scale`
/// returns its argument unchanged and `step` only steps the optimizer. Keep an optimizer alive from
/// the call to `unscale_` or `step` until the call to `update`, and do not move a LibTorch
/// optimizer in between.
/// Python: `torch.amp.GradScaler`.
class GradScaler {
 public:
  /// @throw c10::Error if the scaler is enabled and either `growth_factor` <= 1 or `backoff_factor`
  /// >= 1.
  explicit GradScaler(GradScalerOptions options = {});
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;
  GradScaler(GradScaler&&) = default;
  GradScaler& operator=(GradScaler&&) = default;

  /// Returns `outputs`, a tensor of any shape on any device, multiplied by the scale.
  [[nodiscard]] torch::Tensor scale(const torch::Tensor& outputs);
  /// Returns each tensor multiplied by the scale. The result stays on that tensor's device.
  [[nodiscard]] std::vector<torch::Tensor> scale(const std::vector<torch::Tensor>& outputs);

  /// Divides the gradients of the optimizer's parameters by the scale, in place, and records on the
  /// device whether any gradient is inf or NaN. Call this function once per step, after all
  /// backward passes.
  /// @throw c10::Error if called before the first `scale`, after `step`, or twice before `update`.
  /// @throw c10::ValueError if a gradient is float16, or bfloat16 on a GPU. In either case, no
  /// gradient is changed.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// Unscales the gradients unless `unscale_` has already done so, and steps the optimizer unless a
  /// gradient is inf or NaN. Returns the result of the optimizer's step, or an undefined tensor if
  /// the step is skipped. An optimizer that supports `AmpScaling` unscales gradients and skips
  /// steps in its own kernels.
  /// @throw c10::Error if:
  /// - `step` is called before the first `scale`, or twice before `update`;
  /// - the scaler is enabled and a `closure` is given;
  /// - the optimizer does not support `AmpScaling`, and either no parameter has a gradient, or
  ///   `unscale_` throws.
  /// @throw c10::ValueError if a gradient is bfloat16 on a GPU.
  torch::Tensor step(torch::optim::Optimizer& optimizer,
                     std::function<torch::Tensor()> closure = nullptr);

  /// Ends the iteration and updates the scale. Multiplies the scale by `backoff_factor` if any
  /// gradient was inf or NaN, and by `growth_factor` after `growth_interval` consecutive updates
  /// without inf or NaN. If `new_scale` is given, sets the scale to `new_scale` instead. Does not
  /// read from the device.
  /// @throw c10::Error if:
  /// - `scale` has not been called;
  /// - `new_scale` is not given, and no gradients have been checked since the last update.
  void update(std::optional<double> new_scale = {});

  /// Returns the scale, or 1 if the scaler is disabled. Reads the scale from the device.
  double get_scale() const;
  /// Returns whether the scaler is enabled. Returns false for a CUDA scaler if CUDA is not
  /// available.
  bool is_enabled() const { return options_.enabled; }

  /// Returns the factor by which `update` increases the scale.
  double get_growth_factor() const { return options_.growth_factor; }
  /// Sets the factor by which `update` increases the scale. As in Python, the value is not checked.
  void set_growth_factor(double new_factor) { options_.growth_factor = new_factor; }
  /// Returns the factor by which `update` decreases the scale.
  double get_backoff_factor() const { return options_.backoff_factor; }
  /// Sets the factor by which `update` decreases the scale. As in Python, the value is not checked.
  void set_backoff_factor(double new_factor) { options_.backoff_factor = new_factor; }
  /// Returns the number of consecutive updates without inf or NaN after which the scale grows.
  int64_t get_growth_interval() const { return options_.growth_interval; }
  /// Sets the number of consecutive updates without inf or NaN after which the scale grows.
  void set_growth_interval(int64_t new_interval) { options_.growth_interval = new_interval; }

  /// Returns a dict with the same keys as in Python: "scale", "growth_factor", "backoff_factor",
  /// "growth_interval", and "_growth_tracker", the number of updates without inf or NaN since the
  /// scale last changed. The dict is empty if the scaler is disabled. Call it after `update`. Reads
  /// two values from the device.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Restores a state dict returned by `state_dict` here or in Python. Does nothing if the scaler
  /// is disabled.
  /// @throw c10::Error if the dict is empty (as returned by a disabled scaler), lacks a key, or
  /// contains an invalid value. The scaler is not changed.
  void load_state_dict(const c10::IValue& state);

 private:
  friend class sconce::RunScope;

  enum class Stage { ready, unscaled, stepped };
  struct OptimizerState {
    Stage stage = Stage::ready;
    std::vector<torch::Tensor> found_infs = {};  // one per device with gradients; 1 if inf or NaN
  };

  // Discards the state of an iteration that an exception interrupted before `update`.
  void forget_iteration() { states_.clear(); }
  OptimizerState& state_of(const torch::optim::Optimizer& optimizer, const char* caller);
  void unscale(torch::optim::Optimizer& optimizer, OptimizerState& state);
  void step_in_kernels(optim::AmpScaling& amp_scaling, torch::optim::Optimizer& optimizer,
                       OptimizerState& state);
  torch::Tensor step_from_host(torch::optim::Optimizer& optimizer, OptimizerState& state);
  void depend_on_options() const;
  torch::Tensor combined(const std::vector<torch::Tensor>& found_infs) const;

  GradScalerOptions options_;  // after a load, init_scale and the factors are the loaded values
  int64_t init_growth_tracker_ = 0;
  torch::Tensor scale_;  // float32 () on the device of the first scaled tensor, undefined before
  torch::Tensor growth_tracker_;  // int32 (), created with scale_
  std::unordered_map<const torch::optim::Optimizer*, OptimizerState> states_;
  int runs_ = 0;  // number of fits in progress that use this object
};

}  // namespace sconce::amp
