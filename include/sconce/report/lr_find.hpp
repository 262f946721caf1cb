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

/// Options of `lr_find`, with fastai's names and defaults.
struct LRFindOptions {
  double start_lr = 1e-7;  ///< learning rate of the first step, above 0
  double end_lr = 10;      ///< learning rate of the last step, above `start_lr`
  int64_t num_it = 100;    ///< number of steps, at least 10
  /// Whether to stop when the smoothed loss exceeds four times its lowest value.
  bool stop_div = true;
  /// Options of the trainer that makes the steps: the device, the precision, the loss and so on.
  /// `max_epochs`, `max_time`, `graph`, `compiler`, `fast_dev_run` and `metrics` are not used.
  TrainerOptions trainer = {};
};

/// The losses of a sweep of the learning rate.
struct LRFindResult {
  std::vector<double> lrs = {};     ///< learning rate of each step
  std::vector<double> losses = {};  ///< smoothed loss of each step, before the step
  /// The learning rate in the middle of the longest descent of the smoothed loss. Empty if the loss
  /// does not descend.
  std::optional<double> suggestion = {};

  /// Returns the chart of the losses by the logarithm of the learning rate.
  LineChart chart(std::string title = "Learning rate finder") const;
};

namespace detail {

/// The callback that sweeps the learning rate, and restores what the fit changes.
class LRSweep : public TrainerCallback {
 public:
  /// @throw c10::Error if an option is out of its range.
  explicit LRSweep(LRFindOptions options);

  /// Returns the options of a trainer whose fit has enough epochs.
  TrainerOptions trainer_options(const AnyBatches& train) const;
  /// Returns what the sweep found.
  /// @throw c10::Error if the loss diverged at once.
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
  double mean_ = 0;  // of the losses, decaying
  bool diverged_ = false;
  std::shared_ptr<Saved> saved_ = {};  // of the model and the optimizer, during the fit
};

}  // namespace detail

/// Trains the model for some steps while the learning rate of all parameter groups grows
/// exponentially, and returns the smoothed loss at each rate. Then it restores bit for bit the
/// parameters, buffers, gradients and modes of the model, the state and options of the optimizer,
/// and the random generators of the CPU and of the trainer's device. As after a fit, the model
/// stays on the trainer's device. The batches keep their epoch.
///
/// The loss of a step is that of its last batch, averaged over the ranks of a process group. It is
/// smoothed as an average that decays by 0.98. If it becomes nan or infinite, the sweep ends there.
/// Python: fastai's `Learner.lr_find`, Lightning's `Tuner.lr_find`.
/// @throw c10::Error if:
/// - an option is out of its range, or a lazy layer of the model is uninitialized;
/// - the loss diverges within the first tenth of the steps and the five that follow, from which no
///   curve can be drawn;
/// - the optimizer has a class whose state `Stateful` does not know;
/// - `Trainer::fit` throws it.
/// Even then, the model and the optimizer are as before.
template <class M>
LRFindResult lr_find(M& model, torch::optim::Optimizer& optimizer, const AnyBatches& train,
                     const LRFindOptions& options = {}) {
  detail::LRSweep sweep(options);
  Trainer(sweep.trainer_options(train))
      .fit(model, optimizer, FitData{.train = train, .callbacks = {&sweep}});
  return sweep.result();
}

}  // namespace sconce
