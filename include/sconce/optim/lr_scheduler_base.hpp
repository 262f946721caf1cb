#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce {
class StateVisitor;  // writes and reads states, in src/
}  // namespace sconce

namespace sconce::optim::lr_scheduler {

/// One value for all parameter groups, or a list with one value per group.
/// Python: a single value or a list.
template <class T>
class PerGroup {
 public:
  /// Uses one value for all groups.
  template <std::convertible_to<T> U>
  PerGroup(U&& value) : values_{T(std::forward<U>(value))} {}
  /// Uses one value per group, in order.
  PerGroup(std::initializer_list<T> values) : values_(values), is_list_(true) {}
  /// Uses one value per group, in order.
  PerGroup(std::vector<T> values) : values_(std::move(values)), is_list_(true) {}

  bool is_list() const { return is_list_; }  ///< whether there is one value per group
  const std::vector<T>& values() const { return values_; }  ///< the list, or the single value

 private:
  std::vector<T> values_;
  bool is_list_ = false;
};

/// Base class for all schedulers, which set an optimizer's learning rates and can save their state.
/// A scheduler keeps a reference to the optimizer, which must outlive the scheduler. Do not move a
/// LibTorch optimizer after creating a scheduler for it, because the next step would throw. sconce
/// optimizers cannot be moved.
class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Returns the learning rates after the most recent step, one per group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }

  /// Returns the number of steps taken so far, including steps restored from a state dict.
  /// Python: `last_epoch`.
  int64_t last_epoch() const { return last_epoch_; }

  /// Returns a dict that uses the same keys as in Python and can be loaded by Python's
  /// `load_state_dict`. Each value is a number, a string, None, or a list or dict of such values.
  /// The dict omits MultiStepLR's `milestones` and OneCycleLR's `use_beta1`, which Python derives
  /// from the arguments, as well as flags that are set only during a step. LambdaLR functions are
  /// stored as None.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Restores the progress and the options from a dict that `state_dict` returned in C++ or in
  /// Python. Does not change the optimizer. The learning rates are stored in the optimizer's state
  /// dict. If the saved run called `add_param_group`, add the same groups to the optimizer before
  /// you call this function. You can add the groups before or after you construct the scheduler.
  /// @throw c10::Error if the dict lacks a key, the type or length of a value does not match the
  /// scheduler, or a list is longer than the number of parameter groups. In these cases, the
  /// scheduler is unchanged.
  void load_state_dict(const c10::IValue& state);

  /// Returns the entries of `state_dict` that steps do not change, such as "gamma". A resumed fit
  /// compares these entries with the entries in the checkpoint.
  [[nodiscard]] virtual c10::IValue options() const;

 protected:
  explicit Scheduler(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}
  /// Calls the visitor with the key and value of each member that `step` does not change.
  virtual void visit_options(StateVisitor&) {}
  /// Calls the visitor with the key and value of each member that `step` changes.
  virtual void visit_progress(StateVisitor& state);
  /// Passes the visitor a list with one number per group. The list may omit groups added since
  /// construction or the last step.
  void visit_per_group(const char* key, std::vector<double>& values, StateVisitor& state) const;
  /// Returns the groups' current learning rates.
  std::vector<double> current_lrs() const;
  /// Copies changed tensor learning rates to the optimizer's options.
  void read_lrs() const;
  /// Writes the learning rates to the optimizer's learning rate tensors, if any, so that a captured
  /// optimizer step uses the new learning rates.
  void write_lrs() const;

  torch::optim::Optimizer& optimizer_;
  int64_t last_epoch_ = 0;
  std::vector<double> last_lr_ = {};

 private:
  void visit(StateVisitor& state);
};

/// Base class for schedulers whose `step` takes no arguments.
/// Python: `LRScheduler`.
class LRScheduler : public Scheduler {
 public:
  /// Sets the learning rates for the next epoch, or for the next batch if called after each batch.
  /// Call this function after the optimizer's `step`.
  /// @throw c10::Error if the schedule has ended.
  virtual void step() = 0;

 protected:
  using Scheduler::Scheduler;
};

/// Base class for schedulers that compute each group's learning rate from its current or initial
/// learning rate.
class GroupLRScheduler : public LRScheduler {
 public:
  /// Sets each group's learning rate for the next epoch.
  /// @throw c10::Error if the schedule has ended, or if it requires the initial learning rate of a
  /// group that was added after the scheduler was constructed.
  void step() override;

 protected:
  using GroupValues = Optimizer::GroupValues;

  explicit GroupLRScheduler(torch::optim::Optimizer& optimizer);
  void visit_options(StateVisitor& state) override;
  void visit_progress(StateVisitor& state) override;
  /// Sets the learning rates for epoch 0. Every constructor calls this function last.
  /// Python: `_initial_step`.
  void start();
  /// Returns the learning rate in epoch `last_epoch_` for a group whose current learning rate is
  /// `lr`.
  /// Python: `get_lr`.
  virtual double get_lr(size_t group, double lr, bool is_initial) const = 0;
  /// Returns the learning rate for epoch 0 without using the current learning rate.
  /// Python: `_get_closed_form_lr`.
  virtual double restart_lr(size_t group) const { return base_lr(group); }
  /// Returns to epoch 0.
  /// Python: `step(0)`.
  virtual void restart();
  /// Sets each group's learning rate to the result of `lr_of`. If `lr_of` throws, no learning rate
  /// is changed.
  void set_lrs(const std::function<double(size_t group, double lr)>& lr_of);
  /// Returns the group's initial learning rate.
  /// @throw c10::Error if the group was added after the scheduler was constructed.
  double base_lr(size_t group) const;

  std::vector<double> base_lrs_ = {};
  int64_t step_count_ = 0;
  std::shared_ptr<std::vector<GroupValues>> groups_;  ///< shared by the optimizer's schedulers

 private:
  friend class SequentialLR;
};

}  // namespace sconce::optim::lr_scheduler
