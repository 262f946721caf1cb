#pragma once

#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce {
class StateVisitor;  // writes and reads states, in src/
}  // namespace sconce

namespace sconce::optim::lr_scheduler {

/// One value for all parameter groups, or a list with one for each. Python: a value or a list.
template <class T>
class PerGroup {
 public:
  template <std::convertible_to<T> U>
  PerGroup(U&& value) : values_{T(std::forward<U>(value))} {}
  PerGroup(std::initializer_list<T> values) : values_(values), is_list_(true) {}
  PerGroup(std::vector<T> values) : values_(std::move(values)), is_list_(true) {}

  bool is_list() const { return is_list_; }                 ///< whether it has one for each group
  const std::vector<T>& values() const { return values_; }  ///< the list, or the one value

 private:
  std::vector<T> values_;
  bool is_list_ = false;
};

/// What all schedulers are: something that sets an optimizer's learning rates and has a state.
/// Keeps a reference to the optimizer, which must outlive it and stay where it is.
class Scheduler {
 public:
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  virtual ~Scheduler() = default;

  /// The learning rates after the latest step, one a group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }

  /// Returns a dict with Python's keys and values that are numbers, strings, None, or lists or
  /// dicts of these, which Python's `load_state_dict` takes. Left out is what Python derives from
  /// the constructor's arguments and cannot be told by these: MultiStepLR's `milestones`,
  /// OneCycleLR's `use_beta1`, and the flags that are set only during a step. LambdaLR's functions
  /// are None.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Takes such a dict, or Python's: the progress and the options that are in it. The optimizer
  /// stays as it is, for its learning rates are its own state.
  /// @throw c10::Error if the dict lacks a key, or a value is of another type or length than the
  /// scheduler's; the scheduler is then as it was.
  void load_state_dict(const c10::IValue& state);

 protected:
  explicit Scheduler(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}
  /// Shows the visitor each member that belongs to the state, with its key.
  virtual void visit(StateVisitor& state);
  /// The groups' learning rates as they are now.
  std::vector<double> current_lrs() const;
  void write_lrs() const;  // where the learning rate is a tensor, which a graph of the step reads

  torch::optim::Optimizer& optimizer_;
  int64_t last_epoch_ = 0;
  std::vector<double> last_lr_ = {};
};

/// A scheduler that needs no more than to be told of each step. Python: `LRScheduler`.
class LRScheduler : public Scheduler {
 public:
  /// Sets the learning rates of the next epoch, or of the next batch where it is stepped by
  /// batches. To be called after the optimizer's `step`.
  /// @throw c10::Error if the schedule has no such epoch.
  virtual void step() = 0;

 protected:
  using Scheduler::Scheduler;
};

/// A scheduler that computes each group's learning rate from its present or its initial one.
class GroupLRScheduler : public LRScheduler {
 public:
  void step() override;

 protected:
  using GroupValues = Optimizer::GroupValues;

  explicit GroupLRScheduler(torch::optim::Optimizer& optimizer);
  void visit(StateVisitor& state) override;
  /// Sets the learning rates of epoch 0; every constructor ends with it. Python: `_initial_step`.
  void start();
  /// The learning rate in epoch `last_epoch_` of the group that has `lr` now. Python: `get_lr`.
  virtual double get_lr(size_t group, double lr, bool is_initial) const = 0;
  /// The learning rate in epoch 0, whatever it is now. Python: `_get_closed_form_lr`.
  virtual double restart_lr(size_t group) const { return base_lr(group); }
  /// The group's initial learning rate.
  /// @throw c10::Error if the group was added after the scheduler.
  double base_lr(size_t group) const;

  std::vector<double> base_lrs_ = {};
  std::shared_ptr<std::vector<GroupValues>> groups_;  ///< shared by the optimizer's schedulers

 private:
  friend class SequentialLR;
  void restart();
  void set_lrs(const std::function<double(size_t group, double lr)>& lr_of);

  int64_t step_count_ = 0;
};

}  // namespace sconce::optim::lr_scheduler
