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
/// Python: a value or a list.
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

/// Base class of all schedulers, which set the learning rates of an optimizer and can save their
/// state. A scheduler keeps a reference to the optimizer, which must outlive it. Do not move a
/// LibTorch optimizer after creating a scheduler for it; sconce's optimizers cannot be moved. A
/// step after a move throws.
class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// Returns the learning rates after the latest step, one per group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }

  /// Returns the number of steps so far, including steps restored from a state.
  /// Python: `last_epoch`.
  int64_t last_epoch() const { return last_epoch_; }

  /// Returns a dict that Python's `load_state_dict` accepts, with Python's keys. Its values are
  /// numbers, strings, None, and lists and dicts of these. It omits MultiStepLR's `milestones` and
  /// OneCycleLR's `use_beta1`, which Python derives from the arguments, and flags that are set only
  /// during a step. The functions of LambdaLR are None.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Restores the progress and the options from `state_dict`, or from Python's. The optimizer is
  /// not changed; its own state contains the learning rates. Parameter groups that the run added
  /// later must already be in the optimizer. They may have been added before or after the scheduler
  /// was constructed.
  /// @throw c10::Error if the dict lacks a key, a value has a different type or length than the
  /// scheduler's, or a list has more numbers than the optimizer has groups. The scheduler is not
  /// changed.
  void load_state_dict(const c10::IValue& state);

  /// Returns the part of `state_dict` that no step changes, such as "gamma". A resumed fit compares
  /// it with the one in its file.
  [[nodiscard]] virtual c10::IValue options() const;

 protected:
  explicit Scheduler(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}
  /// Calls the visitor with each member that no step changes, and its key.
  virtual void visit_options(StateVisitor&) {}
  /// Calls the visitor with each member that steps change, and its key.
  virtual void visit_progress(StateVisitor& state);
  /// Calls the visitor with a list of one number per group. The list may lack groups that were
  /// added later.
  void visit_per_group(const char* key, std::vector<double>& values, StateVisitor& state) const;
  /// Returns the current learning rates of the groups.
  std::vector<double> current_lrs() const;
  /// Reads learning rates stored in tensors into the optimizer's options, if they were changed.
  void read_lrs() const;
  /// Writes the learning rates into the optimizer's tensors, if there are any, for a graph of its
  /// step.
  void write_lrs() const;

  torch::optim::Optimizer& optimizer_;
  int64_t last_epoch_ = 0;
  std::vector<double> last_lr_ = {};

 private:
  void visit(StateVisitor& state);
};

/// A scheduler whose `step` has no arguments.
/// Python: `LRScheduler`.
class LRScheduler : public Scheduler {
 public:
  /// Sets the learning rates for the next epoch, or for the next batch if you call it after each
  /// batch. Call it after the optimizer's `step`.
  /// @throw c10::Error if the schedule is over.
  virtual void step() = 0;

 protected:
  using Scheduler::Scheduler;
};

/// A scheduler that computes each group's learning rate from the current or the initial one.
class GroupLRScheduler : public LRScheduler {
 public:
  /// Sets the learning rate of each group for the next epoch.
  /// @throw c10::Error if the schedule is over, or if it needs the initial learning rate of a group
  /// that was added after the scheduler.
  void step() override;

 protected:
  using GroupValues = Optimizer::GroupValues;

  explicit GroupLRScheduler(torch::optim::Optimizer& optimizer);
  void visit_options(StateVisitor& state) override;
  void visit_progress(StateVisitor& state) override;
  /// Sets the learning rates of epoch 0. Every constructor ends with this call.
  /// Python: `_initial_step`.
  void start();
  /// Returns the learning rate in epoch `last_epoch_` of a group whose current rate is `lr`.
  /// Python: `get_lr`.
  virtual double get_lr(size_t group, double lr, bool is_initial) const = 0;
  /// Returns the learning rate in epoch 0, which does not depend on the current one.
  /// Python: `_get_closed_form_lr`.
  virtual double restart_lr(size_t group) const { return base_lr(group); }
  /// Goes back to epoch 0.
  /// Python: `step(0)`.
  virtual void restart();
  /// Sets each group's learning rate to the result of `lr_of`, or none of them if it throws.
  void set_lrs(const std::function<double(size_t group, double lr)>& lr_of);
  /// Returns the group's initial learning rate.
  /// @throw c10::Error if the group was added after the scheduler.
  double base_lr(size_t group) const;

  std::vector<double> base_lrs_ = {};
  int64_t step_count_ = 0;
  std::shared_ptr<std::vector<GroupValues>> groups_;  ///< shared by the optimizer's schedulers

 private:
  friend class SequentialLR;
};

}  // namespace sconce::optim::lr_scheduler
