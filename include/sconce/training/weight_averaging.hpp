#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sconce/optim/ema.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Updates the averages of the model's values after each step, and runs tests with the averages
/// instead of the current values.
///
///     optim::ExponentialMovingAverage averages(*net);
///     WeightAveraging averaging(averages);
///     trainer.fit(net, optimizer, {.train = train, .test = test, .callbacks = {&averaging}});
///
/// After the fit, the model contains the trained values, not the averages. To use the averages,
/// create an `optim::ExponentialMovingAverage::SwapGuard`. Python: Lightning's
/// `EMAWeightAveraging`, which leaves the averages in the model.
class WeightAveraging : public TrainerCallback {
 public:
  /// Constructs a callback. `averages` must belong to the fit's model and outlive this object.
  /// `name` identifies the averages' state in checkpoints. If a fit has two WeightAveraging
  /// callbacks, they must have different names.
  explicit WeightAveraging(optim::ExponentialMovingAverage& averages, std::string name = "ema")
      : averages_(averages), name_(std::move(name)) {}

  /// Updates the averages.
  void on_after_optimizer_step(Fit&) override { averages_.update(); }
  /// Replaces the model's values with the averages.
  void on_test_start(Fit&) override { swapped_.emplace(averages_); }
  /// Restores the model's unaveraged values.
  void on_test_end(Fit&) override { swapped_.reset(); }
  /// Returns the name passed to the constructor.
  std::string name() const override { return name_; }
  /// Returns the averages so that checkpoints can store them.
  std::optional<Stateful> state() override { return Stateful(averages_); }

 private:
  optim::ExponentialMovingAverage& averages_;
  std::string name_;
  std::optional<optim::ExponentialMovingAverage::SwapGuard> swapped_ = {};
};

}  // namespace sconce
