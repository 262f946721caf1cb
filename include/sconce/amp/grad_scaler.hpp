#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {
class AmpScaling;
}  // namespace sconce::optim

namespace sconce::amp {

/// The arguments of `torch.amp.GradScaler`, with Python's names and defaults.
struct GradScalerOptions {
  torch::DeviceType device = torch::DeviceType::CUDA;  ///< where the losses lie
  double init_scale = 65536.0;
  double growth_factor = 2.0;   ///< above 1; multiplies the scale after growth_interval good steps
  double backoff_factor = 0.5;  ///< below 1; multiplies the scale after inf or nan
  int64_t growth_interval = 2000;  ///< consecutive updates without inf or nan
  bool enabled = true;             ///< false: losses and gradients stay as they are
};

/// Keeps small gradients of float16 from becoming 0: multiplies the loss by a scale, divides the
/// gradients by it, skips steps whose gradients hold inf or nan, and adapts the scale. In a step:
/// `scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update();`, with
/// `scaler.unscale_(optimizer)` before `step` where gradients are clipped.
///
/// The scale lives on the device of the first tensor scaled. Gradients may lie on several devices,
/// be of several types and be sparse. An optimizer that implements `sconce::optim::AmpScaling`, and
/// says that it can, is stepped without any host read; for any other the host reads once whether to
/// skip. Without CUDA a scaler for GPUs warns and is disabled: it then passes tensors through, and
/// `step` only steps the optimizer. Python: `torch.amp.GradScaler`.
class GradScaler {
  struct None {};

 public:
  /// @throw c10::Error if enabled with growth_factor <= 1 or backoff_factor >= 1.
  explicit GradScaler(GradScalerOptions options = {});
  /// Makes `GradScaler({})` a scaler without options. It would be ambiguous with a copy otherwise.
  explicit GradScaler(std::initializer_list<None>) : GradScaler() {}
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;
  GradScaler(GradScaler&&) = default;
  GradScaler& operator=(GradScaler&&) = default;

  /// Returns the tensor, of any shape and on any device, times the scale.
  [[nodiscard]] torch::Tensor scale(const torch::Tensor& outputs);
  [[nodiscard]] std::vector<torch::Tensor> scale(const std::vector<torch::Tensor>& outputs);

  /// Divides the gradients of the optimizer's parameters by the scale, in place, and notes on the
  /// device whether any is inf or nan. To be called once per step, after all of backward.
  /// @throw c10::Error before any `scale`, after `step`, or if called twice before `update`; also
  /// (as c10::ValueError) if a gradient is float16, or bfloat16 on a GPU. The gradients are then as
  /// they were.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// Unscales the gradients, if `unscale_` has not, and steps the optimizer unless a gradient is
  /// inf or nan. Returns what the optimizer's step returns; undefined if skipped. An optimizer that
  /// implements `AmpScaling` unscales and skips in its kernels.
  /// @throw c10::Error before any `scale`, if called twice before `update`, or, while enabled, with
  /// a `closure`; with an optimizer that does not implement `AmpScaling` also if no parameter has a
  /// gradient, and as `unscale_`.
  torch::Tensor step(torch::optim::Optimizer& optimizer,
                     std::function<torch::Tensor()> closure = nullptr);

  /// Ends the iteration: multiplies the scale by backoff_factor if any optimizer's gradients held
  /// inf or nan, by growth_factor after growth_interval updates without, or sets it to `new_scale`.
  /// The host reads nothing.
  /// @throw c10::Error before any `scale`, or if no gradient was checked since the last update and
  /// there is no `new_scale`.
  void update(std::optional<double> new_scale = {});

  /// Returns the scale, which the host reads from the device; 1 if disabled.
  double get_scale() const;
  bool is_enabled() const { return options_.enabled; }

  double get_growth_factor() const { return options_.growth_factor; }
  void set_growth_factor(double new_factor) { options_.growth_factor = new_factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  void set_backoff_factor(double new_factor) { options_.backoff_factor = new_factor; }
  int64_t get_growth_interval() const { return options_.growth_interval; }
  void set_growth_interval(int64_t new_interval) { options_.growth_interval = new_interval; }

  /// Returns a dict with Python's keys, to be called after `update`: "scale", "growth_factor",
  /// "backoff_factor", "growth_interval" and "_growth_tracker", the updates without inf or nan
  /// since the scale last changed. The host reads two values. A disabled scaler's is empty.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Goes on from such a dict, or Python's; does nothing if disabled.
  /// @throw c10::Error if the dict is empty, which a disabled scaler's is, lacks a key, or has a
  /// value that is none that a scaler can have; the scaler is then as it was.
  void load_state_dict(const c10::IValue& state);

 private:
  enum class Stage { ready, unscaled, stepped };
  struct OptimizerState {
    Stage stage = Stage::ready;
    std::vector<torch::Tensor> found_infs = {};  // one a device that holds gradients; 1 if found
  };

  OptimizerState& state_of(const torch::optim::Optimizer& optimizer, const char* who);
  void unscale(torch::optim::Optimizer& optimizer, OptimizerState& state);
  void step_in_kernels(optim::AmpScaling& amp_scaling, torch::optim::Optimizer& optimizer,
                       OptimizerState& state);
  torch::Tensor step_from_host(torch::optim::Optimizer& optimizer, OptimizerState& state);
  torch::Tensor combined(const std::vector<torch::Tensor>& found_infs) const;

  GradScalerOptions options_;  // init_scale and the factors are the loaded ones after a load
  int64_t init_growth_tracker_ = 0;
  torch::Tensor scale_;  // float32 () on the device of the first tensor scaled, else undefined
  torch::Tensor growth_tracker_;  // int32 (), made with scale_
  std::unordered_map<const torch::optim::Optimizer*, OptimizerState> states_;
};

}  // namespace sconce::amp
