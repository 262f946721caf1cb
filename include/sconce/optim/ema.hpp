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
struct ExponentialMovingAverageOptions {
  double decay = 0.999;                      ///< weight of the earlier average, from 0 to 1
  bool use_buffers = false;                  ///< averages the buffers too instead of copying them
  std::optional<torch::Device> device = {};  ///< device of the averages; the model's by default
};

/// Keeps an exponential moving average of each parameter of a model, and an average or a copy of
/// each buffer. It owns the averages and shares the model's tensors, which live on in it if the
/// model goes; it sees the optimizer's steps, but not layers or parameters that are registered or
/// replaced later. Before construction, lazy layers must have run their first forward, and the
/// model should be on its device. The host reads nothing, unless the averages are on the CPU and
/// the model is not. Python:
/// `torch.optim.swa_utils.AveragedModel(model, device, use_buffers=...,
/// multi_avg_fn=get_ema_multi_avg_fn(decay))`.
class ExponentialMovingAverage {
 public:
  /// Starts with copies of the model's tensors.
  /// @throw c10::Error if decay is not in [0, 1].
  explicit ExponentialMovingAverage(torch::nn::Module& model,
                                    const ExponentialMovingAverageOptions& options = {});
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;
  ExponentialMovingAverage& operator=(const ExponentialMovingAverage&) = delete;

  /// Updates the averages. The first call copies the model's values; later calls set each average
  /// to decay * average + (1 - decay) * value, rounded towards 0 for integers. Call it after the
  /// optimizer's step. Python: `update_parameters(model)`.
  /// @throw c10::Error if a tensor of the model has another shape or type than its average, while a
  /// SwapGuard lives, or in a captured step on a GPU, whose replays cannot count the updates;
  /// nothing has changed.
  void update();

  /// Returns the number of calls of `update`.
  int64_t n_averaged() const { return n_averaged_; }

  /// Gives the model the averages as its values while the guard lives. Afterwards the model has its
  /// own values again, bit for bit, also if an exception ends the scope. Nothing is copied if both
  /// are on one device. A change of the model's values in that time, such as by a forward of
  /// BatchNorm in training mode, changes the averages, or is lost if they are on another device.
  /// A CUDA graph that was captured before still reads the model's own values.
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

  /// Returns the averages, which are not copied, and the number of updates with Python's keys:
  /// "n_averaged" (0-dim, int64, on the CPU) and "module.<name>" for each parameter and buffer.
  [[nodiscard]] torch::OrderedDict<std::string, torch::Tensor> state_dict() const;

  /// Copies the values of a state from `state_dict`, or from Python.
  /// @throw c10::Error if a key is missing or unknown, or a tensor has another shape; nothing has
  /// changed.
  void load_state_dict(const torch::OrderedDict<std::string, torch::Tensor>& state);

 private:
  struct Average {
    std::string name;
    torch::Tensor value;  // the model's own
    torch::Tensor average;
    bool is_copied;  // at each update, as the buffers are without use_buffers
  };

  void add(const std::string& name, const torch::Tensor& value, bool is_copied);
  void update_now();
  void check(const char* what) const;

  ExponentialMovingAverageOptions options_;
  std::vector<Average> averages_ = {};
  int64_t n_averaged_ = 0;
  bool is_swapped_ = false;
};

}  // namespace sconce::optim
