#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sconce/optim/ema.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Updates averages of the model after each step, and tests the averages instead of the model.
/// After the fit the model has its own values; an `optim::ExponentialMovingAverage::SwapGuard`
/// gives it the averages. Python: `EMAWeightAveraging` of Lightning, which leaves the averages in
/// the model.
class WeightAveraging : public TrainerCallback {
 public:
  /// The averages must be those of the fit's model, and must outlive this object. `name` is that of
  /// their state in a checkpoint. Two WeightAveraging of one fit need different names.
  explicit WeightAveraging(optim::ExponentialMovingAverage& averages, std::string name = "ema")
      : averages_(averages), name_(std::move(name)) {}

  /// Updates the averages.
  void on_after_optimizer_step(Fit&) override { averages_.update(); }
  /// Gives the model the averages as its values.
  void on_test_start(Fit&) override { swapped_.emplace(averages_); }
  /// Gives the model its own values again.
  void on_test_end(Fit&) override { swapped_.reset(); }
  /// Returns the name of the constructor.
  std::string name() const override { return name_; }
  /// Returns the averages as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(averages_); }

 private:
  optim::ExponentialMovingAverage& averages_;
  std::string name_;
  std::optional<optim::ExponentialMovingAverage::SwapGuard> swapped_ = {};
};

}  // namespace sconce
