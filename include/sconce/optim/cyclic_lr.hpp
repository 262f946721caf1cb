#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"

namespace sconce::optim::lr_scheduler {

/// The curve by which `OneCycleLR` goes from one value to the next.
enum class AnnealStrategy { cos, linear };

/// Options of `OneCycleLR`, with Python's names and defaults. Either total_steps or both of epochs
/// and steps_per_epoch must be given.
struct OneCycleLROptions {
  std::optional<int64_t> total_steps = {};      ///< number of steps of the cycle
  std::optional<int64_t> epochs = {};           ///< used without total_steps
  std::optional<int64_t> steps_per_epoch = {};  ///< used without total_steps
  double pct_start = 0.3;                       ///< share of the steps in which the rate rises
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;  ///< the curve
  bool cycle_momentum = true;  ///< whether the momentum changes, opposite to the learning rate
  PerGroup<double> base_momentum = 0.85;  ///< momentum or beta1 at max_lr
  PerGroup<double> max_momentum = 0.95;   ///< momentum or beta1 at the start and the end
  double div_factor = 25.0;               ///< max_lr divided by the initial learning rate
  double final_div_factor = 1e4;          ///< initial learning rate divided by the last one
  bool three_phase = false;  ///< returns to the initial rate first, and then goes to the last one
};

/// Raises the learning rate to max_lr and then lowers it far below the initial one, in one cycle.
/// The momentum changes the other way: it is the momentum of SGD and RMSprop, and the first beta of
/// optimizers that have betas. Step it after each batch. Python: `OneCycleLR`.
class OneCycleLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if:
  /// - the number of steps is missing or not positive;
  /// - pct_start is not in [0, 1];
  /// - the length of a list is not the number of groups;
  /// - cycle_momentum is set and the optimizer has no momentum.
  OneCycleLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& max_lr,
             const OneCycleLROptions& options);

  /// Returns the number of steps of the cycle, also if it came from a state. Python: `total_steps`.
  int64_t total_steps() const { return total_steps_; }

  /// A part of the cycle. The texts name the values at its ends, as in Python's state.
  struct Phase {
    double end_step = 0;  ///< the last step
    std::string start_lr = {}, end_lr = {}, start_momentum = {}, end_momentum = {};
  };

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;
  double anneal(double start, double end, double pct) const;

  int64_t total_steps_;
  std::vector<Phase> phases_;
  AnnealStrategy anneal_strategy_;
  bool cycle_momentum_;
};

/// How the height of `CyclicLR`'s cycles changes.
enum class CyclicMode {
  triangular,   ///< every cycle has the same height
  triangular2,  ///< each cycle has half the height of the previous one
  exp_range     ///< the height is multiplied by gamma at every step
};

/// The argument of `CyclicLROptions::scale_fn`.
enum class ScaleMode {
  cycle,      ///< the number of the cycle, from 1
  iterations  ///< the number of steps so far
};

/// Options of `CyclicLR`, with Python's names and defaults.
struct CyclicLROptions {
  int64_t step_size_up = 2000;                 ///< number of steps in which the rate rises
  std::optional<int64_t> step_size_down = {};  ///< number of steps in which it falls; none: as many
  CyclicMode mode = CyclicMode::triangular;    ///< how the height changes, without a scale_fn
  double gamma = 1.0;                          ///< factor of exp_range
  std::function<double(int64_t)> scale_fn = {};  ///< factor of the height, instead of a mode
  ScaleMode scale_mode = ScaleMode::cycle;       ///< argument of scale_fn
  bool cycle_momentum = true;  ///< whether the momentum changes, opposite to the learning rate
  PerGroup<double> base_momentum = 0.8;  ///< momentum or beta1 at max_lr
  PerGroup<double> max_momentum = 0.9;   ///< momentum or beta1 at base_lr
};

/// Raises the learning rate from base_lr to max_lr and lowers it again, in cycles of equal length.
/// The momentum changes the other way: it is the momentum of SGD and RMSprop, and the first beta of
/// optimizers that have betas. Step it after each batch. As in Python, the first rate is the
/// group's initial learning rate if another scheduler has set one, and base_lr otherwise; a state
/// has None for scale_fn. Python: `CyclicLR`.
class CyclicLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if:
  /// - step_size_up is below 1 or step_size_down is negative;
  /// - the length of a list is not the number of groups;
  /// - cycle_momentum is set and the optimizer has no momentum.
  CyclicLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& base_lr,
           const PerGroup<double>& max_lr, const CyclicLROptions& options = {});

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;
  double scale(double cycle) const;

  std::vector<double> max_lrs_;
  double total_size_;  // steps of a cycle
  double step_ratio_;  // share of the steps in which the rate rises
  CyclicMode mode_;
  double gamma_;
  std::function<double(int64_t)> scale_fn_;
  ScaleMode scale_mode_;
  bool cycle_momentum_;
  std::vector<double> base_momentums_ = {};
  std::vector<double> max_momentums_ = {};
};

}  // namespace sconce::optim::lr_scheduler
