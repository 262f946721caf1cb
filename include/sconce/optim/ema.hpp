#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// Options for `ExponentialMovingAverage`, with the same names and defaults as in Python.
struct ExponentialMovingAverageOptions {
  double decay = 0.999;                      ///< weight of the previous average, from 0 to 1
  bool use_buffers = false;                  ///< whether to average buffers instead of copying them
  std::optional<torch::Device> device = {};  ///< device of the averages; defaults to the model's
                                             ///< device
};

/// Maintains exponential moving averages of a model's parameters, and averages or copies of its
/// buffers.
///
///     optim::ExponentialMovingAverage averages(*net);
///     for (...) {
///       ...
///       optimizer.step();
///       averages.update();
///     }
///     const optim::ExponentialMovingAverage::SwapGuard guard(averages);  // use the averages
///
/// This class owns the averages and shares the model's tensors, which it keeps alive even if the
/// model is destroyed. The averages reflect optimizer updates but ignore layers and parameters that
/// are registered or replaced after construction. Before you construct this object, run a forward
/// pass to initialize any lazy layers, and move the model to its training device. Data is copied to
/// the host only if the averages are on the CPU and the model is on a different device.
/// Python: `torch.optim.swa_utils.AveragedModel` with `multi_avg_fn=get_ema_multi_avg_fn(decay)`
/// and the arguments `device` and `use_buffers`.
class ExponentialMovingAverage {
 public:
  /// Initializes the averages with copies of the model's tensors.
  /// @throw c10::Error if `decay` is not in [0, 1].
  explicit ExponentialMovingAverage(torch::nn::Module& model,
                                    const ExponentialMovingAverageOptions& options = {});
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;
  ExponentialMovingAverage& operator=(const ExponentialMovingAverage&) = delete;

  /// Updates the averages. The first update copies the model's values. Each later update sets every
  /// average to `decay * average + (1 - decay) * value`, rounded toward 0 for integers. Call
  /// `update` after the optimizer's step.
  /// Python: `update_parameters(model)`.
  /// @throw c10::Error if a tensor of the model has a different shape or type than its average, if
  /// a `SwapGuard` is alive, or in a captured step on a GPU, because replays cannot count updates.
  /// After any of these errors, the averages are unchanged.
  void update();

  /// Returns the number of calls to `update`.
  int64_t n_averaged() const { return n_averaged_; }

  /// Replaces the model's values with the averages while the guard is alive, then restores the
  /// original values, bit for bit, even if the scope exits with an exception. If the averages and
  /// the model are on the same device, no data is copied. While the guard is alive, any change to
  /// the model's values (for example, by a BatchNorm forward pass in training mode) changes the
  /// averages instead. If the averages are on a different device, the change is lost. A CUDA graph
  /// that was captured before the swap still reads the original values.
  class [[nodiscard]] SwapGuard {
   public:
    /// Swaps the values. `averages` must outlive the guard.
    /// @throw c10::Error under the same conditions as `update`.
    explicit SwapGuard(ExponentialMovingAverage& averages);
    ~SwapGuard();
    SwapGuard(const SwapGuard&) = delete;
    SwapGuard& operator=(const SwapGuard&) = delete;

   private:
    ExponentialMovingAverage& averages_;
    std::vector<torch::Tensor> own_ = {};
  };

  /// Returns the averages, without copying them, and the number of updates. The keys are the same
  /// as in Python: "n_averaged" (0-dim, int64, on the CPU) and "module.<name>" for each parameter
  /// and buffer.
  [[nodiscard]] torch::OrderedDict<std::string, torch::Tensor> state_dict() const;

  /// Copies the values from a state dict returned by `state_dict` in C++ or in Python.
  /// @throw c10::Error if a key is missing or unknown, or if a tensor has a different shape.
  /// After any of these errors, the averages are unchanged.
  void load_state_dict(const torch::OrderedDict<std::string, torch::Tensor>& state);

 private:
  struct Average {
    std::string name;
    torch::Tensor value;  // the model's tensor
    torch::Tensor average;
    bool is_copied;  // whether each update copies the value, as it does for buffers unless
                     // use_buffers is set
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
