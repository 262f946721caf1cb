#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"

namespace sconce::optim::lr_scheduler {

/// The shape of the curve between two learning rates in `OneCycleLR`.
enum class AnnealStrategy { cos, linear };

/// Options for `OneCycleLR`, with the same names and defaults as in Python. Set either
/// `total_steps`, or both `epochs` and `steps_per_epoch`.
struct OneCycleLROptions {
  std::optional<int64_t> total_steps = {};      ///< number of steps in the cycle
  std::optional<int64_t> epochs = {};           ///< used if `total_steps` is not set
  std::optional<int64_t> steps_per_epoch = {};  ///< used if `total_steps` is not set
  double pct_start = 0.3;  ///< fraction of the cycle in which the rate increases
  AnnealStrategy anneal_strategy = AnnealStrategy::cos;  ///< shape of the curve
  bool cycle_momentum = true;             ///< whether to cycle momentum inversely to the learning
                                          ///< rate
  PerGroup<double> base_momentum = 0.85;  ///< momentum or beta1 at `max_lr`
  PerGroup<double> max_momentum = 0.95;   ///< momentum or beta1 at the start and at the end
  double div_factor = 25.0;               ///< `max_lr` divided by the initial learning rate
  double final_div_factor = 1e4;          ///< initial learning rate divided by the final one
  bool three_phase = false;  ///< whether to return to the initial rate before the final phase
};

/// In a single cycle, increases the learning rate to `max_lr`, then decreases it to far below the
/// initial rate. Momentum (SGD and RMSprop) or the first beta (optimizers with betas) is cycled
/// inversely to the learning rate. Step the scheduler after each batch.
///
///     optim::lr_scheduler::OneCycleLR scheduler(optimizer, 0.1, {.total_steps = 1000});
///
/// Python: `OneCycleLR`.
class OneCycleLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if:
  /// - the number of steps is missing or not positive;
  /// - `pct_start` is not in [0, 1];
  /// - the length of a list does not equal the number of parameter groups;
  /// - `cycle_momentum` is set and the optimizer has no momentum.
  OneCycleLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& max_lr,
             const OneCycleLROptions& options);

  /// Returns the number of steps in the cycle, which may have been restored from a state dict.
  /// Python: `total_steps`.
  int64_t total_steps() const { return total_steps_; }

  /// A phase of the learning-rate cycle. As in Python's state dict, each string is the key under
  /// which a parameter group stores its value for the start or end of the phase.
  struct Phase {
    double end_step = 0;  ///< the last step of the phase
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

/// How `CyclicLR` changes the amplitude from cycle to cycle.
enum class CyclicMode {
  triangular,   ///< all cycles have the same amplitude
  triangular2,  ///< each cycle has half the amplitude of the previous one
  exp_range     ///< the amplitude is multiplied by `gamma` in every step
};

/// The argument passed to `CyclicLROptions::scale_fn`.
enum class ScaleMode {
  cycle,      ///< the number of the cycle, starting at 1
  iterations  ///< the number of steps so far
};

/// Options for `CyclicLR`, with the same names and defaults as in Python.
struct CyclicLROptions {
  int64_t step_size_up = 2000;                 ///< number of steps in which the learning rate
                                               ///< increases
  std::optional<int64_t> step_size_down = {};  ///< number of steps in which the learning rate
                                               ///< decreases; defaults to `step_size_up`
  CyclicMode mode = CyclicMode::triangular;    ///< how the amplitude changes; ignored if `scale_fn`
                                               ///< is set
  double gamma = 1.0;                          ///< factor per step for `exp_range`
  std::function<double(int64_t)> scale_fn = {};  ///< returns the scale of the amplitude; replaces
                                                 ///< `mode`
  ScaleMode scale_mode = ScaleMode::cycle;       ///< argument of `scale_fn`
  bool cycle_momentum = true;            ///< whether to cycle momentum inversely to the learning
                                         ///< rate
  PerGroup<double> base_momentum = 0.8;  ///< momentum or beta1 at `max_lr`
  PerGroup<double> max_momentum = 0.9;   ///< momentum or beta1 at `base_lr`
};

/// Cycles the learning rate between `base_lr` and `max_lr` in cycles of equal length. Momentum (SGD
/// and RMSprop) or the first beta (optimizers with betas) is cycled inversely to the learning rate.
/// Step the scheduler after each batch. As in Python, the first learning rate is the group's
/// initial learning rate if another scheduler has set it, and `base_lr` otherwise. In a state dict,
/// `scale_fn` is None.
/// Python: `CyclicLR`.
class CyclicLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if:
  /// - `step_size_up` is below 1 or `step_size_down` is negative;
  /// - the length of a list does not equal the number of parameter groups;
  /// - `cycle_momentum` is set and the optimizer has no momentum.
  CyclicLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& base_lr,
           const PerGroup<double>& max_lr, const CyclicLROptions& options = {});

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;
  double scale(double cycle) const;

  std::vector<double> max_lrs_;
  double total_size_;  // number of steps in a cycle
  double step_ratio_;  // fraction of the cycle in which the rate increases
  CyclicMode mode_;
  double gamma_;
  std::function<double(int64_t)> scale_fn_;
  ScaleMode scale_mode_;
  bool cycle_momentum_;
  std::vector<double> base_momentums_ = {};
  std::vector<double> max_momentums_ = {};
};

}  // namespace sconce::optim::lr_scheduler
