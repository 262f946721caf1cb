#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sconce/optim/cyclic_lr.hpp"
#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/optim/reduce_lr_on_plateau.hpp"
#include "sconce/optim/warm_restarts.hpp"

/// PyTorch's learning rate schedulers, for any `torch::optim::Optimizer`. A scheduler sets the
/// learning rates in the parameter groups' options, starting at construction.
///
///     optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/30);
///     for (int epoch = 0; epoch < 100; ++epoch) {
///       train(...);
///       scheduler.step();
///     }
///
/// The optimizer must outlive its schedulers (see `Scheduler`). Several schedulers may control the
/// same optimizer, from one thread at a time. Stepping a scheduler before the optimizer's first
/// step does not cause a warning.
///
/// There is no `last_epoch` argument. To resume a scheduler, call `load_state_dict`. As in Python,
/// `initial_lr` and OneCycleLR's other values belong to the parameter groups. The `state_dict` of a
/// sconce optimizer contains these values, so save both the optimizer's and the scheduler's state.
/// LibTorch's optimizers cannot store these values. A LibTorch optimizer's schedulers share the
/// values as long as at least one of the schedulers exists. After all of the schedulers are
/// destroyed, a new scheduler starts from the current learning rates.
/// Python: `torch.optim.lr_scheduler`.
namespace sconce::optim::lr_scheduler {

/// Multiplies the initial learning rate by a function of the epoch.
/// Python: `LambdaLR`.
class LambdaLR final : public GroupLRScheduler {
 public:
  /// A function of the number of steps taken so far.
  using Function = std::function<double(int64_t epoch)>;

  /// @throw c10::Error if the length of a list of functions does not equal the number of parameter
  /// groups.
  LambdaLR(torch::optim::Optimizer& optimizer, const PerGroup<Function>& lr_lambda);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  std::vector<Function> lr_lambdas_;
};

/// Multiplies the learning rate by a function of the epoch, in every epoch except the first.
/// Python: `MultiplicativeLR`.
class MultiplicativeLR final : public GroupLRScheduler {
 public:
  /// A function of the number of steps taken so far.
  using Function = std::function<double(int64_t epoch)>;

  /// @throw c10::Error if the length of a list of functions does not equal the number of parameter
  /// groups.
  MultiplicativeLR(torch::optim::Optimizer& optimizer, const PerGroup<Function>& lr_lambda);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  void restart() override;

  std::vector<Function> lr_lambdas_;
};

/// Multiplies the learning rate by `gamma` every `step_size` epochs.
/// Python: `StepLR`.
class StepLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if `step_size` is below 1.
  StepLR(torch::optim::Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;

  int64_t step_size_;
  double gamma_;
};

/// Multiplies the learning rate by `gamma` at each milestone. A milestone listed twice is applied
/// twice.
/// Python: `MultiStepLR`.
class MultiStepLR final : public GroupLRScheduler {
 public:
  /// `milestones` contains epochs in any order, and `gamma` is the factor.
  MultiStepLR(torch::optim::Optimizer& optimizer, std::vector<int64_t> milestones,
              double gamma = 0.1);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  std::vector<int64_t> milestones_;
  double gamma_;
};

/// Multiplies the learning rate by `gamma` every epoch.
/// Python: `ExponentialLR`.
class ExponentialLR final : public GroupLRScheduler {
 public:
  /// `gamma` is the per-epoch factor.
  ExponentialLR(torch::optim::Optimizer& optimizer, double gamma);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;

  double gamma_;
};

/// Anneals the learning rate from its initial value to `eta_min` along half a cosine over `T_max`
/// epochs, increases it again over the next `T_max` epochs, and so on.
/// Python: `CosineAnnealingLR`.
class CosineAnnealingLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if `T_max` is below 1.
  CosineAnnealingLR(torch::optim::Optimizer& optimizer, int64_t T_max, double eta_min = 0.0);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  int64_t T_max_;
  double eta_min_;
};

/// Multiplies the initial learning rate by `factor` until epoch `total_iters`.
/// Python: `ConstantLR`.
class ConstantLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if `factor` is not in (0, 1]. Python accepts 0 but fails in epoch
  /// `total_iters`, when the scheduler divides by `factor`.
  explicit ConstantLR(torch::optim::Optimizer& optimizer, double factor = 1.0 / 3,
                      int64_t total_iters = 5);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  double factor_;
  int64_t total_iters_;
};

/// Decays the learning rate to 0 over `total_iters` epochs by multiplying the initial rate by
/// `(1 - epoch / total_iters)^power`.
/// Python: `PolynomialLR`.
class PolynomialLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if `power` is negative, which would cause a division by 0 in epoch
  /// `total_iters`.
  explicit PolynomialLR(torch::optim::Optimizer& optimizer, int64_t total_iters = 5,
                        double power = 1.0);

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;

  int64_t total_iters_;
  double power_;
};

/// Options for `LinearLR`, with the same names and defaults as in Python.
struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< factor in epoch 0; above 0, at most 1
  double end_factor = 1.0;        ///< factor from epoch `total_iters` on; 0 to 1
  int64_t total_iters = 5;        ///< number of epochs between the two factors
};

/// Multiplies the initial learning rate by a linearly changing factor, for example for warmup.
/// Python: `LinearLR`.
class LinearLR final : public GroupLRScheduler {
 public:
  /// @throw c10::Error if a factor is out of range.
  explicit LinearLR(torch::optim::Optimizer& optimizer, LinearLROptions options = {});

 private:
  void visit_options(StateVisitor& state) override;
  double get_lr(size_t group, double lr, bool is_initial) const override;
  double restart_lr(size_t group) const override;

  LinearLROptions options_;
};

/// Runs several schedulers in sequence, switching at the milestones.
/// Python: `SequentialLR`.
class SequentialLR final : public LRScheduler {
 public:
  /// The scheduler at index i > 0 takes over at epoch `milestones[i - 1]`. Do not step these
  /// schedulers yourself.
  /// @throw c10::Error if:
  /// - the list of schedulers is empty, or a scheduler is null or belongs to a different optimizer;
  /// - the milestones are not in ascending order, or the number of milestones is not one less than
  ///   the number of schedulers.
  SequentialLR(torch::optim::Optimizer& optimizer,
               std::vector<std::shared_ptr<GroupLRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;
  [[nodiscard]] c10::IValue options() const override;

 private:
  void visit_options(StateVisitor& state) override;
  void visit_progress(StateVisitor& state) override;
  size_t active() const;

  std::vector<std::shared_ptr<GroupLRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace sconce::optim::lr_scheduler
