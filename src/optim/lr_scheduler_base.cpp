#include "sconce/optim/lr_scheduler_base.hpp"

#include <c10/util/Type.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <typeinfo>

#include "host_call.hpp"
#include "optim/scheduler_arguments.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim::lr_scheduler {

namespace {

// Returns the values that schedulers store for an optimizer's groups. LibTorch optimizers cannot
// store these values, so all schedulers of the same optimizer share the returned object. If values
// exist for an address, they belong to the optimizer that is currently at that address, because
// schedulers never outlive their optimizer.
std::shared_ptr<std::vector<Optimizer::GroupValues>> values_of(
    const torch::optim::Optimizer& optimizer) {
  using Values = std::vector<Optimizer::GroupValues>;
  if (const auto* ours = dynamic_cast<const Optimizer*>(&optimizer)) {
    return ours->group_values();
  }
  static std::mutex mutex;
  static std::map<const torch::optim::Optimizer*, std::weak_ptr<Values>> all;
  const std::scoped_lock lock(mutex);
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  auto values = all[&optimizer].lock();
  if (!values) all[&optimizer] = values = std::make_shared<Values>();
  return values;
}

}  // namespace

c10::IValue Scheduler::state_dict() const {
  StateVisitor state;
  const_cast<Scheduler*>(this)->visit(state);  // writing a dict does not modify members
  return state.dict();
}

void Scheduler::load_state_dict(const c10::IValue& state) {
  detail::check_not_capturing(typeid(*this), "load_state_dict");
  const c10::IValue before = state_dict();
  const std::string where = c10::demangle(typeid(*this).name()) + "::load_state_dict";
  StateVisitor reader(state, where);
  try {
    visit(reader);
  } catch (...) {
    StateVisitor undo(before, where);
    visit(undo);
    throw;
  }
}

c10::IValue Scheduler::options() const {
  StateVisitor state;
  const_cast<Scheduler*>(this)->visit_options(state);
  return state.dict();
}

void Scheduler::visit(StateVisitor& state) {
  visit_options(state);
  visit_progress(state);
}

void Scheduler::visit_progress(StateVisitor& state) {
  state("last_epoch", last_epoch_);
  state.check(last_epoch_ >= -1 && last_epoch_ <= most_steps, "from -1 to 2^53");
  visit_per_group("_last_lr", last_lr_, state);
}

// A list contains one value for each group that existed when the scheduler was constructed or last
// stepped. The list in a loaded state may be longer or shorter, because the program that saved the
// state may have added a group at a different time.
void Scheduler::visit_per_group(const char* key, std::vector<double>& values,
                                StateVisitor& state) const {
  const size_t most = std::max(values.size(), optimizer_.param_groups().size());
  state.any_length(key, values);
  state.check(!values.empty() && values.size() <= most,
              c10::str("a list of 1 to ", most, " values, one for each parameter group").c_str());
}

std::vector<double> Scheduler::current_lrs() const {
  read_lrs();
  std::vector<double> lrs;
  for (const auto& group : optimizer_.param_groups()) lrs.push_back(group.options().get_lr());
  TORCH_CHECK(
      !lrs.empty(), c10::demangle(typeid(*this).name()),
      ": expected an optimizer with parameter groups, got an empty, possibly moved-from optimizer");
  return lrs;
}

void Scheduler::read_lrs() const {
  if (auto* ours = dynamic_cast<Optimizer*>(&optimizer_)) ours->read_lr();
}

void Scheduler::write_lrs() const {
  if (auto* ours = dynamic_cast<Optimizer*>(&optimizer_)) ours->write_lr();
}

GroupLRScheduler::GroupLRScheduler(torch::optim::Optimizer& optimizer)
    : LRScheduler(optimizer), groups_(values_of(optimizer)) {
  last_epoch_ = -1;
  const auto& groups = optimizer.param_groups();
  groups_->resize(groups.size());
  read_lrs();
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto initial = groups_->at(i).find("initial_lr");
    const bool has_initial = initial != groups_->at(i).end();
    base_lrs_.push_back(has_initial ? initial->second : groups[i].options().get_lr());
  }
}

// The groups' values are set only at this point, because a derived class's constructor may throw.
void GroupLRScheduler::start() {
  for (size_t i = 0; i < base_lrs_.size(); ++i) {
    groups_->at(i).try_emplace("initial_lr", base_lrs_[i]);
  }
  step_count_ = 1;
  ++last_epoch_;
  set_lrs([this](size_t group, double lr) { return get_lr(group, lr, true); });
}

void GroupLRScheduler::step() {
  detail::run_on_host(typeid(*this), "step", [this] {
    auto undo = restore_unless_released(last_epoch_, step_count_);
    ++last_epoch_;  // get_lr reads both
    ++step_count_;
    set_lrs([this](size_t group, double lr) { return get_lr(group, lr, false); });
    undo.release();
  });
}

void GroupLRScheduler::restart() {
  auto undo = restore_unless_released(last_epoch_);
  last_epoch_ = 0;
  set_lrs([this](size_t group, double) { return restart_lr(group); });
  undo.release();
}

void GroupLRScheduler::set_lrs(const std::function<double(size_t group, double lr)>& lr_of) {
  std::vector<double> lrs = current_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] = lr_of(i, lrs[i]);
  for (size_t i = 0; i < lrs.size(); ++i) optimizer_.param_groups()[i].options().set_lr(lrs[i]);
  write_lrs();
  last_lr_ = current_lrs();
}

double GroupLRScheduler::base_lr(size_t group) const {
  TORCH_CHECK(group < base_lrs_.size(), c10::demangle(typeid(*this).name()), ": expected the ",
              base_lrs_.size(), " parameter groups that existed at construction, got more groups");
  return base_lrs_[group];
}

void GroupLRScheduler::visit_options(StateVisitor& state) {
  visit_per_group("base_lrs", base_lrs_, state);
}

void GroupLRScheduler::visit_progress(StateVisitor& state) {
  LRScheduler::visit_progress(state);
  state("_step_count", step_count_);
  state.check(step_count_ >= 0 && step_count_ <= most_steps, "from 0 to 2^53");
}

}  // namespace sconce::optim::lr_scheduler
