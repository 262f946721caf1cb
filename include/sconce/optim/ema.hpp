#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// Options of `ExponentialMovingAverage`, with Python's names and defaults.
struct EmaOptions {
  double decay = 0.999;                      ///< weight of the past in an average; 0 to 1
  bool use_buffers = false;                  ///< average the buffers too, else copy them
  std::optional<torch::Device> device = {};  ///< where the averages lie; none: with the model
};

/// Keeps an exponential moving average of each parameter of a model, and of each buffer or a copy
/// of it. It keeps the model's tensors themselves, so an optimizer's steps are seen, but not layers
/// or parameters that are registered or replaced later. A lazy layer must have made its first
/// forward, and the model should be on its device, before this is constructed. Reads nothing on the
/// host, unless the averages lie on the CPU and the model does not. Python:
/// `torch.optim.swa_utils.AveragedModel(model, device, use_buffers=...,
/// multi_avg_fn=get_ema_multi_avg_fn(decay))`.
class ExponentialMovingAverage {
 public:
  /// Starts with copies of the model's tensors as they are.
  /// @throw c10::Error if decay is not in [0, 1].
  explicit ExponentialMovingAverage(torch::nn::Module& model, const EmaOptions& options = {});
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;
  ExponentialMovingAverage& operator=(const ExponentialMovingAverage&) = delete;

  /// Takes the model's present values into the averages: the first time it copies them, then it
  /// sets each average to decay * average + (1 - decay) * value, an integer one rounded towards 0.
  /// To be called after the optimizer's step. Python: `update_parameters(model)`.
  /// @throw c10::Error if a tensor of the model has another shape or type than its average, or the
  /// averages are in the model; nothing has then changed.
  void update();

  /// How often `update` was called.
  int64_t n_averaged() const { return n_averaged_; }

  /// For as long as it lives, the averages are the model's values; then the model has its own
  /// again, bitwise, and where an exception ends the scope too. Nothing is copied if they lie on
  /// one device. What changes the model's values in that time (a forward of BatchNorm in training
  /// mode) changes the averages instead, or is lost where these lie on another device.
  class [[nodiscard]] SwapGuard {
   public:
    /// @throw c10::Error as `update` does. The averages must outlive the guard.
    explicit SwapGuard(ExponentialMovingAverage& averages);
    ~SwapGuard();
    SwapGuard(const SwapGuard&) = delete;
    SwapGuard& operator=(const SwapGuard&) = delete;

   private:
    ExponentialMovingAverage& averages_;
    std::vector<torch::Tensor> own_ = {};
  };

  /// The averages, not copies of them, and their number with Python's keys: "n_averaged" (0-dim,
  /// int64, on the CPU) and "module.<name>" for each parameter and buffer.
  [[nodiscard]] torch::OrderedDict<std::string, torch::Tensor> state_dict() const;

  /// Copies such a state's values, or Python's.
  /// @throw c10::Error if a key is missing, unknown or has another shape; nothing has then changed.
  void load_state_dict(const torch::OrderedDict<std::string, torch::Tensor>& state);

 private:
  struct Average {
    std::string name;
    torch::Tensor value;  // the model's own
    torch::Tensor average;
    bool is_copied;  // at each update, as the buffers are without use_buffers
  };

  void add(const std::string& name, const torch::Tensor& value, bool is_copied);
  void check(const char* what) const;

  EmaOptions options_;
  std::vector<Average> averages_ = {};
  int64_t n_averaged_ = 0;
  bool is_swapped_ = false;
};

}  // namespace sconce::optim
