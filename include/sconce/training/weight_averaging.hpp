#pragma once

#include <optional>

#include "sconce/optim/ema.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Updates averages of the model after each step, and tests the averages instead of the model.
/// Python: `EMAWeightAveraging` of Lightning.
class WeightAveraging : public TrainerCallback {
 public:
  /// The averages must be those of the fit's model, and must outlive this object.
  explicit WeightAveraging(optim::ExponentialMovingAverage& averages) : averages_(averages) {}

  void on_after_step(Fit&) override { averages_.update(); }
  void on_test_begin(Fit&) override { swapped_.emplace(averages_); }
  void on_test_end(Fit&) override { swapped_.reset(); }
  std::string name() const override { return "ema"; }
  std::optional<Stateful> state() override { return Stateful(averages_); }

 private:
  optim::ExponentialMovingAverage& averages_;
  std::optional<optim::ExponentialMovingAverage::SwapGuard> swapped_ = {};
};

}  // namespace sconce
