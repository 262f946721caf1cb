#pragma once

#include <cstdint>

#include "sconce/optim/lr_scheduler_base.hpp"

namespace sconce::optim::lr_scheduler {

/// Lowers the learning rate along half a cosine from the initial one to eta_min in T_0 epochs, and
/// starts again, each time over T_mult times as many epochs. Python: `CosineAnnealingWarmRestarts`.
class CosineAnnealingWarmRestarts final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if T_0 or T_mult is below 1.
  CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0.0);

  void step() override;

  /// Sets the learning rates of a position within the epochs, such as
  /// `epoch + static_cast<double>(batch) / batches` after each batch; between integers the quotient
  /// would be 0.
  /// @throw c10::Error if epoch is negative or above 2^53.
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
  double T_i_;        // length of the current cosine in epochs
  double T_cur_ = 0;  // number of epochs since its start
};

}  // namespace sconce::optim::lr_scheduler
