#pragma once

#include <optional>

#include "sconce/optim/ema.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Updates averages of the model after each step, and tests the averages instead of the model.
/// After the fit the model has its own values; an `optim::ExponentialMovingAverage::SwapGuard`
/// gives it the averages. Python: `EMAWeightAveraging` of Lightning, which leaves the averages in
/// the model.
class WeightAveraging : public TrainerCallback {
 public:
  /// The averages must be those of the fit's model, and must outlive this object.
  explicit WeightAveraging(optim::ExponentialMovingAverage& averages) : averages_(averages) {}

  /// Updates the averages.
  void on_after_step(Fit&) override { averages_.update(); }
  /// Gives the model the averages as its values.
  void on_test_begin(Fit&) override { swapped_.emplace(averages_); }
  /// Gives the model its own values again.
  void on_test_end(Fit&) override { swapped_.reset(); }
  /// Returns "ema".
  std::string name() const override { return "ema"; }
  /// Returns the averages as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(averages_); }

 private:
  optim::ExponentialMovingAverage& averages_;
  std::optional<optim::ExponentialMovingAverage::SwapGuard> swapped_ = {};
};

}  // namespace sconce
