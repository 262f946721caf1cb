#pragma once

#include "sconce/training/fit.hpp"

namespace sconce::test {

// A fit under way without a trainer. It cannot be saved.
struct FitByHand final : Fit {
  explicit FitByHand(const FitSetup& setup) : Fit(setup) {}
  RunProgress progress() const override { return {}; }
  void resume(const RunProgress&) override {}
};

}  // namespace sconce::test
