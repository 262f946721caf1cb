#pragma once

#include <torch/optim/optimizer.h>

#include <chrono>
#include <memory>
#include <optional>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/fit.hpp"
#include "sconce/training/fit_data.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/trainer_options.hpp"
#include "training/callback_scope.hpp"
#include "training/epoch_sums.hpp"
#include "training/run_scope.hpp"
#include "training/train_step.hpp"

namespace sconce {

/// Runs the loop of a fit. The constructor's arguments must outlive this object.
class FitLoop final : public Fit {
 public:
  /// The options specify the device. Error messages start with `caller`.
  /// @throw c10::Error in all cases in which `Trainer::fit` throws before it changes anything.
  FitLoop(const TrainerOptions& options, amp::MixedPrecision& precision,
          const detail::ModelSteps& steps, torch::optim::Optimizer& of, const FitData& data,
          const char* caller);

  /// Runs `Trainer::fit`. Must be called at most once.
  FitResult run();
  /// Runs `Trainer::fit_epoch`. Reuses the step from an earlier call if it is suitable, and stores
  /// the step for later calls. Must be called at most once.
  EpochMetrics run_epoch(std::shared_ptr<TrainStep>& kept);

  RunProgress progress() const override;
  void resume(const RunProgress& progress) override;

 private:
  void start();
  bool train_epoch(const AnyBatches::Next& next);
  void train_step(const AnyBatches::Next& next);
  void test_epoch();
  void end_epoch();
  void warn_non_finite_loss();
  void check_time();
  bool pause();
  void save(const Callbacks& saving);
  bool agree_to_stop();
  void call(CallbackVerb verb);

  const TrainerOptions& options_;
  amp::MixedPrecision& precision_;
  const detail::ModelSteps& steps_;
  const FitData& data_;
  Metrics metrics_;
  RunScope run_;
  EpochSums sums_;
  std::shared_ptr<TrainStep> step_ = {};
  std::optional<std::chrono::steady_clock::time_point> begin_ = {};  // set only with a max_time
  bool has_warned_ = false;
};

}  // namespace sconce
