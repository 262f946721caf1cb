#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/report/line_chart.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/training/trainer_callback.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

/// Options for `lr_find`, with the same names and defaults as in fastai.
struct LRFindOptions {
  double start_lr = 1e-7;  ///< learning rate of the first step, above 0
  double end_lr = 10;      ///< learning rate of the last step, above `start_lr`
  int64_t num_it = 100;    ///< number of steps, at least 10
  /// Whether to stop when the smoothed loss exceeds four times its lowest value.
  bool stop_div = true;
  /// Options for the Trainer that runs the steps, such as the device, the precision, and the loss.
  /// `max_epochs`, `max_time`, `graph`, `compiler`, `fast_dev_run`, and `metrics` are ignored.
  TrainerOptions trainer = {};
};

/// Losses recorded during a learning-rate sweep.
struct LRFindResult {
  std::vector<double> lrs = {};     ///< learning rate of each step
  std::vector<double> losses = {};  ///< smoothed loss of each step, computed before the update
  /// Learning rate at the midpoint of the longest decreasing subsequence of smoothed losses. Empty
  /// if the loss never decreases.
  std::optional<double> suggestion = {};

  /// Returns a chart of loss versus learning rate, with a logarithmic learning-rate axis.
  LineChart chart(std::string title = "Learning rate finder") const;
};

namespace detail {

/// A callback that sweeps the learning rate and restores all state that the fit changes.
class LRSweep : public TrainerCallback {
 public:
  /// Constructs a callback with the given options.
  /// @throw c10::Error if an option is out of range.
  explicit LRSweep(LRFindOptions options);

  /// Returns Trainer options with enough epochs for the sweep.
  TrainerOptions trainer_options(const AnyBatches& train) const;
  /// Returns the sweep's results.
  /// @throw c10::Error if the loss diverged immediately.
  LRFindResult result() const;

  void setup(Fit& fit) override;
  void on_fit_start(Fit& fit) override;
  void on_after_optimizer_step(Fit& fit) override;
  void on_fit_end(Fit& fit) override;
  bool should_save(const Fit& fit) const override;

 private:
  struct Saved;
  double lr_of(int64_t step) const;

  LRFindOptions options_;
  LRFindResult found_ = {};
  double mean_ = 0;  // exponentially decaying mean of the losses
  bool diverged_ = false;
  std::shared_ptr<Saved> saved_ = {};  // state of the model and the optimizer during the fit
};

}  // namespace detail

/// Trains the model for `num_it` steps while exponentially increasing the learning rate of all
/// parameter groups, and returns the smoothed loss at each learning rate. Afterward, restores the
/// model (parameters, buffers, gradients, and modes), the optimizer (state and options), and the
/// random number generators of the CPU and the Trainer's device, bit for bit. As after a fit, the
/// model remains on the Trainer's device. `train`'s epoch counter does not change.
///
/// A step's loss is its last batch's loss, averaged over the process group's ranks. Losses are
/// smoothed by an exponential moving average with a decay of 0.98. If the loss becomes NaN or
/// infinite, the sweep ends.
/// Python: fastai's `Learner.lr_find` and Lightning's `Tuner.lr_find`.
/// @throw c10::Error if:
/// - an option is out of range, or a lazy layer of the model is uninitialized;
/// - the loss diverges within the first tenth of the steps or the following five steps, which is
///   too early to draw a curve;
/// - `Stateful` does not support the type of the optimizer;
/// - `Trainer::fit` throws a c10::Error, in which case the model and the optimizer are still
///   restored.
template <class M>
LRFindResult lr_find(M& model, torch::optim::Optimizer& optimizer, const AnyBatches& train,
                     const LRFindOptions& options = {}) {
  detail::LRSweep sweep(options);
  Trainer(sweep.trainer_options(train))
      .fit(model, optimizer, FitData{.train = train, .callbacks = {&sweep}});
  return sweep.result();
}

}  // namespace sconce
