#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/nn/mode_guard.hpp"
#include "sconce/nn/model.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/repr.hpp"

/// Stochastic weight averaging.
/// Python: `torch.optim.swa_utils`.
namespace sconce::optim::swa_utils {

/// Options for `SWALR`, with the same names and defaults as in Python.
struct SWALROptions {
  int64_t anneal_epochs = 10;  ///< epochs until the rate reaches `swa_lr`; 0 switches immediately
  /// Shape of the annealing curve.
  lr_scheduler::AnnealStrategy anneal_strategy = lr_scheduler::AnnealStrategy::cos;
};

/// Anneals the learning rate from its current value to `swa_lr` and keeps it there.
/// Python: `SWALR`.
class SWALR final : public lr_scheduler::GroupLRScheduler {
 public:
  /// @throw c10::Error if `anneal_epochs` is negative, or if the length of a list does not equal
  /// the number of parameter groups.
  SWALR(torch::optim::Optimizer& optimizer, const lr_scheduler::PerGroup<double>& swa_lr,
        const SWALROptions& options = {});

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  void restart() override;
  double anneal(int64_t step) const;

  int64_t anneal_epochs_;
  lr_scheduler::AnnealStrategy anneal_strategy_;
};

/// A function that computes the new average from the previous average, `averaged`, and a new value,
/// `current`. `num_averaged` is a 0-dim int64 tensor that contains the number of values in
/// `averaged`.
using AvgFn =
    std::function<torch::Tensor(const torch::Tensor& averaged, const torch::Tensor& current,
                                const torch::Tensor& num_averaged)>;

/// A function that updates each average in place with the value at the same index. All tensors in a
/// call have the same type and device.
using MultiAvgFn = std::function<void(const std::vector<torch::Tensor>& averaged,
                                      const std::vector<torch::Tensor>& current,
                                      const torch::Tensor& num_averaged)>;

/// Returns a function that computes the mean of all values.
/// Python: `get_swa_avg_fn`.
AvgFn get_swa_avg_fn();
/// Returns a function that computes `decay * average + (1 - decay) * value`.
/// Python: `get_ema_avg_fn`.
/// @throw c10::Error if `decay` is not in [0, 1].
AvgFn get_ema_avg_fn(double decay = 0.999);
/// Returns a function that computes the mean of all values. Unlike in Python, the returned function
/// accepts integers and rounds their means toward zero.
/// Python: `get_swa_multi_avg_fn`.
MultiAvgFn get_swa_multi_avg_fn();
/// Returns a function that computes `decay * average + (1 - decay) * value`.
/// Python: `get_ema_multi_avg_fn`.
/// @throw c10::Error if `decay` is not in [0, 1].
MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999);

/// Options for `AveragedModel`, with the same names and defaults as in Python.
struct AveragedModelOptions {
  std::optional<torch::Device> device = {};  ///< device of the averages; defaults to the model's
                                             ///< device
  AvgFn avg_fn = {};             ///< computes one average; defaults to the mean of all values
  MultiAvgFn multi_avg_fn = {};  ///< computes many averages at once; cannot be combined with
                                 ///< `avg_fn`
  bool use_buffers = false;      ///< whether to average buffers instead of copying them
};

/// The part of `AveragedModel` that is independent of the model type. Not for direct use.
class AveragedModelBase : public torch::nn::Module, public ReprOverride {
 public:
  /// Updates the averages with the model's values. The first call copies the model's values into
  /// the averages. Call this function after the optimizer's step. As in Python, this function reads
  /// the update count on the host.
  /// @throw c10::Error if a tensor of the model has a different shape or type than its average, or
  /// in a captured step. After any of these errors, the averages are unchanged.
  void update_parameters(const torch::nn::Module& model);

  /// Accepts a module holder or a pointer to a model.
  template <nn::Model M>
    requires(!std::derived_from<M, torch::nn::Module>)
  void update_parameters(const M& model) {
    update_parameters(static_cast<const torch::nn::Module&>(*model));
  }

  /// Returns "AveragedModel", as in Python.
  std::optional<std::string> repr_name() const override { return "AveragedModel"; }

  torch::Tensor n_averaged;  ///< number of updates, 0-dim int64

 protected:
  AveragedModelBase(const torch::nn::Module& model, AveragedModelOptions options);

 private:
  struct Pairs;
  Pairs pairs_of(const torch::nn::Module& model) const;
  void average_group(const std::vector<torch::Tensor>& own,
                     const std::vector<torch::Tensor>& current) const;

  AveragedModelOptions options_;
};

/// Maintains running averages of a model's parameters in a copy of the model.
///
///     optim::swa_utils::AveragedModel averaged(net);
///     ...  // after each step, or each epoch:
///     averaged.update_parameters(net);
///     ...  // at the end:
///     optim::swa_utils::update_bn(loader, averaged);
///
/// AveragedModel is a module with a "module" submodule and an "n_averaged" buffer, so its state
/// dicts have the same keys as in Python and are interchangeable with Python's. The averages are
/// means of all values unless the options specify a function. Averaging functions are not part of
/// the state dict. Buffers are copied from the model or, if `use_buffers` is set, averaged.
/// BatchNorm statistics do not match averaged weights, so call `update_bn` or set `use_buffers`. To
/// compute exponential averages of a model that cannot be copied, or in a captured step, use
/// `ExponentialMovingAverage`.
/// Python: `AveragedModel`.
template <std::derived_from<torch::nn::Module> M>
class AveragedModel : public AveragedModelBase {
 public:
  /// Copies `model` by calling its `clone` function, without consuming random numbers. Lazy layers
  /// must have run their first forward pass.
  /// @throw c10::Error if:
  /// - `model` cannot be cloned, because it or one of its modules does not derive from
  ///   `torch::nn::Cloneable`;
  /// - a lazy layer in `model` is uninitialized;
  /// - both `avg_fn` and `multi_avg_fn` are given.
  explicit AveragedModel(const M& model, AveragedModelOptions options = {})
      : AveragedModelBase(model, std::move(options)) {}

  /// Accepts a module holder, such as `torch::nn::Linear`.
  explicit AveragedModel(const torch::nn::ModuleHolder<M>& model, AveragedModelOptions options = {})
      : AveragedModel(*model, std::move(options)) {}

  /// Accepts a pointer to a model.
  explicit AveragedModel(const std::shared_ptr<M>& model, AveragedModelOptions options = {})
      : AveragedModel(*model, std::move(options)) {}

  /// Runs the averaged model's forward pass and returns the result.
  template <class... A>
  auto forward(A&&... inputs) {
    return module()->forward(std::forward<A>(inputs)...);
  }

  /// Calls `forward`.
  template <class... A>
  auto operator()(A&&... inputs) {
    return forward(std::forward<A>(inputs)...);
  }

  /// Returns the averaged model.
  /// Python: `module`.
  std::shared_ptr<M> module() const { return std::dynamic_pointer_cast<M>(children().front()); }
};

namespace detail {

// While this object is alive, the BatchNorm layers of a model compute means over batches.
class BatchNormMeans {
 public:
  explicit BatchNormMeans(torch::nn::Module& model);
  ~BatchNormMeans();
  BatchNormMeans(const BatchNormMeans&) = delete;
  BatchNormMeans& operator=(const BatchNormMeans&) = delete;
  bool empty() const { return momenta_.empty(); }

 private:
  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momenta_ = {};
};

// Returns the input of a batch. The batch must be a tensor or begin with one.
template <class Batch>
torch::Tensor input_of(const Batch& batch) {
  if constexpr (std::convertible_to<const Batch&, torch::Tensor>) {
    return batch;
  } else if constexpr (requires { batch.data; } && !requires { batch.begin(); }) {
    return batch.data;  // torch::data::Example
  } else if constexpr (requires { batch.front(); }) {
    return batch.front();
  } else {
    return std::get<0>(batch);
  }
}

}  // namespace detail

/// Recomputes the running statistics of all BatchNorm layers as means over the loader's batches.
/// Does nothing if the model has no such layers. Each batch is a tensor, or a tuple, pair, vector,
/// `data::Dataset`, or `torch::data::Example` that begins with the input. Afterward, each layer's
/// previous momentum and mode are restored, even if an exception is thrown.
/// Python: `update_bn`, which sets all layers to the model's mode.
template <class Loader, nn::Model M>
void update_bn(Loader&& loader, M&& model, std::optional<torch::Device> device = {}) {
  if constexpr (!std::derived_from<std::remove_cvref_t<M>, torch::nn::Module>) {
    update_bn(std::forward<Loader>(loader), *model, device);
  } else {
    const nn::ModeGuard modes(model);
    const detail::BatchNormMeans means(model);
    if (means.empty()) return;
    const at::NoGradGuard no_grad;
    model.train();
    for (auto&& batch : loader) {
      const torch::Tensor input = detail::input_of(batch);
      model.forward(device ? input.to(*device) : input);
    }
  }
}

}  // namespace sconce::optim::swa_utils
