#pragma once

#include <cstdint>

#include "sconce/optim/lr_scheduler_base.hpp"

namespace sconce::optim::lr_scheduler {

/// Anneals the learning rate from its initial value to `eta_min` along half a cosine over `T_0`
/// epochs, then restarts. Each cycle is `T_mult` times as long as the previous one.
/// Python: `CosineAnnealingWarmRestarts`.
class CosineAnnealingWarmRestarts final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if `T_0` or `T_mult` is below 1.
  CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0.0);

  void step() override;

  /// Sets the learning rates for a fractional epoch, for example `epoch +
  /// static_cast<double>(batch) / batches` after each batch. Without the cast, `batch / batches` is
  /// an integer division and yields 0.
  /// @throw c10::Error if `epoch` is negative or above 2^53.
  void step(double epoch);

 private:
  void restart() override;
  void visit_options(StateVisitor& state) override;
  void visit_progress(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  int64_t T_0_;
  int64_t T_mult_;
  double eta_min_;
  double T_i_;        // length of the current cycle in epochs
  double T_cur_ = 0;  // epochs since the start of the cycle
};

}  // namespace sconce::optim::lr_scheduler
