#include "sconce/optim/optimizer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/ScopeExit.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <typeinfo>
#include <unordered_set>
#include <utility>

#include "host_call.hpp"
#include "optim/conversions.hpp"
#include "optim/geometry.hpp"
#include "optim/group_condition.hpp"
#include "state/state_visitor.hpp"
#include "tensor_groups.hpp"

namespace sconce::optim {

namespace {

using c10::IValue;
using c10::impl::GenericDict;

template <size_t N>
bool is_one_of(c10::DeviceType type, const std::array<c10::DeviceType, N>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool fits_fused(const torch::Tensor& parameter) {
  static constexpr std::array devices = {at::kCPU, at::kCUDA, at::kMPS,        at::kXPU,
                                         at::kHPU, at::kMTIA, at::kPrivateUse1};
  static constexpr std::array types = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16};
  return is_one_of(parameter.device().type(), devices) && parameter.layout() == at::kStrided &&
         std::find(types.begin(), types.end(), parameter.scalar_type()) != types.end() &&
         parameter.is_non_overlapping_and_dense();
}

bool fits_foreach(const torch::Tensor& parameter) {
  static constexpr std::array devices = {at::kCPU, at::kCUDA, at::kXPU, at::kMTIA,
                                         at::kPrivateUse1};
  return is_one_of(parameter.device().type(), devices) && parameter.layout() == at::kStrided;
}

Kernels choose(const std::vector<torch::optim::OptimizerParamGroup>& groups, Kernels fastest) {
  const auto all = [&](bool (*fits)(const torch::Tensor&)) {
    return std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::all_of(group.params().begin(), group.params().end(), fits);
    });
  };
  if (fastest == Kernels::fused && all(fits_fused)) return Kernels::fused;
  const bool has_foreach = fastest != Kernels::for_loop;
  return has_foreach && all(fits_foreach) ? Kernels::foreach : Kernels::for_loop;
}

// LibTorch 2.15 merges a group's options with the optimizer's only if it knows their type, and
// takes the optimizer's alone otherwise.
void keep_options_of_other_types(const torch::optim::OptimizerParamGroup& given,
                                 torch::optim::OptimizerParamGroup& group) {
  if (!given.has_options()) return;
  const auto& options = given.options();
  const auto& merged = group.options();
  if (typeid(options) != typeid(merged)) return;
  for (const auto* known :
       {&typeid(torch::optim::AdagradOptions), &typeid(torch::optim::AdamOptions),
        &typeid(torch::optim::AdamWOptions), &typeid(torch::optim::RMSpropOptions),
        &typeid(torch::optim::SGDOptions)}) {
    if (typeid(options) == *known) return;
  }
  group.set_options(options.clone());
}

// Returns what a tensor of that type holds of the number.
double rounded(double number, c10::ScalarType type) {
  if (type == c10::kFloat) return static_cast<float>(number);
  if (type == c10::kHalf) return static_cast<c10::Half>(static_cast<float>(number));
  if (type == c10::kBFloat16) return static_cast<c10::BFloat16>(static_cast<float>(number));
  return number;
}

// Returns the defaults with the value of a learning rate that is a tensor.
std::unique_ptr<torch::optim::OptimizerOptions> with_tensor_lr(
    std::unique_ptr<torch::optim::OptimizerOptions> defaults,
    const std::optional<torch::Tensor>& tensor, const std::string& name) {
  if (!tensor) return defaults;
  TORCH_CHECK_VALUE(tensor->defined() && tensor->numel() == 1, name,
                    ": expected a tensor lr of 1 element");
  TORCH_CHECK_VALUE(at::isFloatingType(tensor->scalar_type()), name,
                    ": expected a floating-point tensor lr, got one of ", tensor->scalar_type());
  const double lr = tensor->item<double>();
  TORCH_CHECK_VALUE(lr >= 0, name, ": expected lr >= 0, got ", lr);
  defaults->set_lr(lr);
  return defaults;
}

const void* first_of(const torch::optim::OptimizerParamGroup& group) {
  return group.params().empty() ? nullptr : group.params().front().unsafeGetTensorImpl();
}

}  // namespace

Optimizer::Optimizer(std::string name, const std::vector<ParamGroup>& groups,
                     std::unique_ptr<Options> defaults, ExtraOptions extra, Kernels fastest)
    : torch::optim::Optimizer(groups, with_tensor_lr(std::move(defaults), extra.lr, name)),
      name_(std::move(name)),
      extra_(std::move(extra)),
      fastest_(fastest),
      kernels_(extra_.kernels == Kernels::automatic ? choose(param_groups_, fastest)
                                                    : extra_.kernels),
      group_values_(std::make_shared<std::vector<GroupValues>>()) {
  TORCH_CHECK_VALUE(kernels_ >= fastest_, name_, ": expected ",
                    fastest_ == Kernels::foreach ? "Kernels::foreach or " : "",
                    "Kernels::for_loop, because LibTorch has no others for it, got Kernels::",
                    kernels_ == Kernels::fused ? "fused" : "foreach");
  for (size_t i = 0; i < groups.size(); ++i) {
    keep_options_of_other_types(groups[i], param_groups_[i]);
  }
  write_lr();
}

ExtraOptions Optimizer::extra(size_t group) const {
  ExtraOptions extra = extra_;
  if (extra.lr) extra.lr = rates_[group].tensor;
  return extra;
}

// Gives every group its rate. A group keeps its tensor, which a graph may read, even if the group
// moves, or is removed and added again.
void Optimizer::match_rates() {
  const auto belongs = [](const GroupRate& rate, const ParamGroup& group) {
    return rate.first == first_of(group);
  };
  const auto is_given = [this](const GroupRate& rate) { return rate.tensor.is_same(*extra_.lr); };
  const size_t count = param_groups_.size();
  if (rates_.size() >= count &&
      std::equal(param_groups_.begin(), param_groups_.end(), rates_.begin(),
                 [&](const auto& group, const auto& rate) { return belongs(rate, group); })) {
    return;
  }
  auto before = std::exchange(rates_, std::vector<GroupRate>(count));
  for (size_t index = 0; index < count; ++index) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const auto& rate) {
      return belongs(rate, param_groups_[index]);
    });
    if (found == before.end()) continue;
    rates_[index] = *found;
    before.erase(found);
  }
  for (size_t index = 0; index < count; ++index) {
    if (rates_[index].tensor.defined()) continue;
    rates_[index] = new_rate(param_groups_[index]);
    if (is_given(rates_[index])) std::erase_if(before, is_given);
  }
  rates_.insert(rates_.end(), before.begin(), before.end());
}

// The tensor of the options becomes that of the first group with its value, unless one has it.
Optimizer::GroupRate Optimizer::new_rate(ParamGroup& group) const {
  GroupRate rate = {.first = first_of(group)};
  if (rate.first != nullptr) rate.owner = StateOwner(group.params().front());
  const double lr = rounded(group.options().get_lr(), extra_.lr->scalar_type());
  const bool is_used = std::any_of(rates_.begin(), rates_.end(), [this](const auto& other) {
    return other.tensor.is_same(*extra_.lr);
  });
  if (is_used || lr != defaults_->get_lr()) {
    rate.tensor = at::empty_like(*extra_.lr);
  } else {
    rate.tensor = *extra_.lr;
    rate.written = lr;
    group.options().set_lr(lr);
  }
  return rate;
}

// The options get the tensor's value, so that schedules continue from it whether or not a state was
// made in between, for which the tensor is read. The defaults follow the tensor of the options, so
// that an added group starts with its value.
void Optimizer::write_lr() {
  if (!extra_.lr) return;
  const at::NoGradGuard no_grad;
  match_rates();
  for (size_t index = 0; index < param_groups_.size(); ++index) {
    auto& options = param_groups_[index].options();
    auto& rate = rates_[index];
    const double lr = options.get_lr();
    if (rate.written == lr) continue;
    rate.tensor.fill_(lr);
    rate.written = rounded(lr, rate.tensor.scalar_type());
    rate.version = rate.tensor._version();
    options.set_lr(rate.written);
    if (rate.tensor.is_same(*extra_.lr)) defaults_->set_lr(rate.written);
  }
}

void Optimizer::read_lr() {
  if (!extra_.lr) return;
  write_lr();
  for (size_t index = 0; index < param_groups_.size(); ++index) {
    if (rates_[index].version != rates_[index].tensor._version()) read_rate(index);
  }
}

void Optimizer::read_rate(size_t group) {
  auto& rate = rates_[group];
  rate.written = rate.tensor.item<double>();
  rate.version = rate.tensor._version();
  param_groups_[group].options().set_lr(rate.written);
}

bool Optimizer::is_capturable() const {
  return all_are_on(c10::kCPU, param_groups_) ||
         (takes_lr_on_device() && all_are_on(c10::kCUDA, param_groups_));
}

bool Optimizer::takes_lr_on_device() const {
  return kernels_ == fastest_ && kernels_ != Kernels::for_loop && extra_.lr && extra_.lr->is_cuda();
}

bool Optimizer::steps_on_device(const torch::Tensor& parameter) const {
  return kernels_ == Kernels::fused || (takes_lr_on_device() && parameter.is_cuda());
}

torch::Tensor Optimizer::state_number(const torch::Tensor& parameter,
                                      const torch::Tensor& number) const {
  const auto device = steps_on_device(parameter) ? parameter.device() : torch::Device(at::kCPU);
  return number.detach().to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true).reshape({});
}

// In C++ `parameters()` lists the parameters of a layer once for each occurrence of the layer.
void Optimizer::drop_repeats(ParamGroup& group) {
  std::unordered_set<const void*> of_others;
  for (size_t i = 0; i < checked_groups_; ++i) {
    for (const auto& p : param_groups_[i].params()) of_others.insert(p.unsafeGetTensorImpl());
  }
  SeenTensors seen;
  std::vector<torch::Tensor> once;
  for (const auto& parameter : group.params()) {
    TORCH_CHECK_VALUE(!of_others.contains(parameter.unsafeGetTensorImpl()), name_,
                      ": expected every parameter in one group, got one in two");
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) once.push_back(parameter);
  }
  group.params() = std::move(once);
}

// The kernels that were chosen for the earlier groups may not support an added group.
void Optimizer::choose_again() {
  const Kernels before = kernels_;
  const Kernels chosen = choose(param_groups_, fastest_);
  if (extra_.kernels != Kernels::automatic || before == chosen) return;
  kernels_ = chosen;
  auto undo = c10::make_scope_exit([&] { kernels_ = before; });
  renew_states();
  undo.release();
  state_replaced();
}

// Converts every state to the form of the kernels.
void Optimizer::renew_states() {
  decltype(state_) renewed;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      const auto found = state_.find(parameter.unsafeGetTensorImpl());
      if (found == state_.end()) continue;
      renewed[found->first] = make_state(state_tensors(*found->second), parameter);
    }
  }
  for (auto& [key, state] : renewed) state_[key] = std::move(state);
}

void Optimizer::check_construction() {
  check(*defaults_);
  for (const auto& group : param_groups_) check(group.options());
  check_new_groups();
}

void Optimizer::add_param_group(const ParamGroup& param_group) {
  detail::refuse_in_capture(name_ + "::add_param_group");
  check_new_groups();
  write_lr();
  if (extra_.lr) defaults_->set_lr(extra_.lr->item<double>());  // which a group without one takes
  {
    // LibTorch refuses every parameter that has a state, even if no group has it any more.
    decltype(state_) states;
    states.swap(state_);
    const auto give_back = c10::make_scope_exit([&] { states.swap(state_); });
    torch::optim::Optimizer::add_param_group(param_group);
  }
  keep_options_of_other_types(param_group, param_groups_.back());
  auto undo = c10::make_scope_exit([this] { param_groups_.pop_back(); });
  check_new_groups();
  undo.release();
  write_lr();
}

void Optimizer::check_new_groups() {
  // Groups may have been removed.
  checked_groups_ = std::min(checked_groups_, param_groups_.size());
  for (; checked_groups_ < param_groups_.size(); ++checked_groups_) {
    auto& group = param_groups_[checked_groups_];
    check_reached(group.options());
    drop_repeats(group);
    choose_again();
    if (kernels_ != Kernels::fused) continue;
    for (const auto& parameter : group.params()) check_fused(parameter);
  }
}

void Optimizer::check_fused(const torch::Tensor& parameter) const {
  TORCH_CHECK(fits_fused(parameter), name_, ": Kernels::fused needs every parameter to be dense, ",
              "of float64, float32, float16 or bfloat16, and on a device that has fused ",
              "kernels, got one of ", parameter.scalar_type(), ", strides ",
              parameter.layout() == at::kStrided ? parameter.strides() : at::IntArrayRef{},
              " and layout ", parameter.layout(), " on ", parameter.device());
}

bool Optimizer::state_fits(size_t group, size_t index, const torch::Tensor& state) const {
  const auto& parameter = param_groups_[group].params()[index];
  TORCH_CHECK_VALUE(parameter.grad().sizes() == parameter.sizes(), name_,
                    "::step: expected the gradient of parameter ", index, " of group ", group,
                    " to have its parameter's sizes, ", parameter.sizes(), ", got ",
                    parameter.grad().sizes());
  if (kernels_ == Kernels::fused) check_fused(parameter);
  if (!state.defined()) return true;
  TORCH_CHECK_VALUE(state.sizes() == parameter.sizes(), name_, "::step: expected parameter ", index,
                    " of group ", group, " to have the sizes of its state, ", state.sizes(),
                    ", got ", parameter.sizes());
  if (state.device() != parameter.device() || state.scalar_type() != parameter.scalar_type()) {
    return false;
  }
  return state.is_sparse() || kernels_ != Kernels::fused || state.strides() == parameter.strides();
}

// Fused kernels assume that a state has the strides of its parameter. With other kernels a state
// keeps its own strides, as in Python, because the rounding of 16-bit types depends on them.
torch::Tensor Optimizer::like_parameter(const torch::Tensor& parameter,
                                        const torch::Tensor& tensor) const {
  auto copy = tensor.detach().to(parameter.device(), parameter.scalar_type(),
                                 /*non_blocking=*/false, /*copy=*/true);
  if (copy.is_sparse() || kernels_ != Kernels::fused) return copy;
  return at::empty_like(parameter.detach()).copy_(copy);
}

torch::Tensor Optimizer::copy_for(const torch::Tensor& parameter, const Tensors& tensors,
                                  const char* key) const {
  const auto found = tensors.find(key);
  if (found == tensors.end() || !found->second.defined()) return {};
  TORCH_CHECK_VALUE(found->second.sizes() == parameter.sizes(), name_, ": expected ", key,
                    " of sizes ", parameter.sizes(), ", got ", found->second.sizes());
  return like_parameter(parameter, found->second);
}

void Optimizer::rewrite_lr() {
  for (auto& rate : rates_) rate.written = std::numeric_limits<double>::quiet_NaN();
  write_lr();
}

void Optimizer::sync_lr() const {
  if (!extra_.lr) return;
  auto& self = const_cast<Optimizer&>(*this);  // the options only repeat the tensors' values
  self.write_lr();
  for (size_t index = 0; index < param_groups_.size(); ++index) self.read_rate(index);
}

void zero_grad(torch::optim::Optimizer& optimizer) {
  depend_on_groups(optimizer);
  detail::run_and_record([&optimizer] {
    for (auto& group : optimizer.param_groups()) {
      for (auto& parameter : group.params()) parameter.mutable_grad().reset();
    }
  });
}

void Optimizer::zero_grad(bool set_to_none) {
  if (set_to_none) return optim::zero_grad(*this);
  depend_on_groups(*this);
  torch::optim::Optimizer::zero_grad(false);
}

torch::Tensor Optimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  step_all({});
  return loss;
}

void Optimizer::step_with_amp_scaling(const torch::Tensor& grad_scale,
                                      const torch::Tensor& found_inf) {
  TORCH_CHECK(kernels_ == Kernels::fused, name_,
              "::step_with_amp_scaling: only Kernels::fused can do it");
  const auto one_float = [](const torch::Tensor& tensor) {
    return tensor.numel() == 1 && tensor.scalar_type() == at::kFloat;
  };
  TORCH_CHECK(found_inf.defined() && one_float(found_inf) &&
                  (!grad_scale.defined() || one_float(grad_scale)),
              name_, "::step_with_amp_scaling: expected float32 tensors of one element");
  step_all({grad_scale, found_inf.reshape({})});
}

bool Optimizer::has_sparse_gradient() const {
  return std::any_of(param_groups_.begin(), param_groups_.end(), [](const auto& group) {
    return std::any_of(group.params().begin(), group.params().end(), [](const auto& parameter) {
      return parameter.grad().defined() && parameter.grad().is_sparse();
    });
  });
}

bool Optimizer::step_supports_amp_scaling() const {
  return kernels_ == Kernels::fused && (extra_.kernels == Kernels::fused || !has_sparse_gradient());
}

void Optimizer::step_all(const Amp& amp) {
  depend_on_groups(*this);
  detail::run_and_record([this, amp] { step_now(amp); });
}

void Optimizer::step_now(const Amp& amp) {
  const at::NoGradGuard no_grad;
  check_new_groups();
  // All checks come before the first change, because half a step could not be repeated.
  const bool takes_sparse = takes_sparse_gradients() && !amp.found_inf.defined();
  bool is_sparse = false;
  for (size_t index = 0; index < param_groups_.size(); ++index) is_sparse |= prepare_group(index);
  TORCH_CHECK(takes_sparse || !is_sparse, name_,
              ": expected dense gradients, got a sparse one, which these kernels do not take");
  write_lr();
  for (size_t index = 0; index < param_groups_.size(); ++index) step_group(index, amp);
}

// The table's own swap is used here and below: std::swap would move the table, which allocates
// memory without throwing, so that a lack of it would end the process.
void Optimizer::replace_state(const std::function<void()>& read) {
  check_new_groups();  // with the options that they were added with
  std::vector<std::unique_ptr<Options>> options;
  for (const auto& group : param_groups_) options.push_back(group.options().clone());
  decltype(state_) before;
  before.swap(state_);
  try {
    read();
    renew_states();
  } catch (...) {
    before.swap(state_);
    for (size_t i = 0; i < options.size(); ++i) {
      param_groups_[i].set_options(std::move(options[i]));
    }
    throw;
  }
  state_replaced();
  rewrite_lr();
}

Optimizer::GroupState Optimizer::state_of_group(size_t index) const {
  GroupState group = {.options = param_groups_[index].options().clone()};
  if (index < rates_.size()) group.lr = rates_[index].tensor;
  if (index < group_values_->size()) group.values = group_values_->at(index);
  return group;
}

void Optimizer::visit_group(GroupState& group, StateVisitor& state) const {
  visit_options(*group.options, state);
  if (group.lr.defined()) state.write_only("lr", group.lr);
  bool maximize = extra_.maximize;
  state("maximize", maximize, false);
  TORCH_CHECK_VALUE(maximize == extra_.maximize, name_,
                    "::load_state_dict: expected maximize=", extra_.maximize,
                    ", which is this optimizer's, got ", maximize);
  state.write_only("foreach",
                   kernels_ == Kernels::fused ? IValue() : IValue(kernels_ == Kernels::foreach));
  state.write_only("differentiable", false);
  state.write_only("fused",
                   kernels_ == Kernels::fused && python_has_fused() ? IValue(true) : IValue());
  for (const char* key : {"base_momentum", "initial_lr", "max_lr", "max_momentum", "min_lr"}) {
    std::optional<double> value;
    if (const auto found = group.values.find(key); found != group.values.end()) {
      value = found->second;
    }
    state.where_there(key, value);
    if (value) group.values[key] = *value;
  }
  state.any_length("params", group.params);
}

IValue Optimizer::state_dict() const {
  sync_lr();
  GenericDict states(c10::IntType::get(), c10::AnyType::get());
  auto groups = StateVisitor::list();
  int64_t index = 0;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    GroupState group = state_of_group(i);
    for (const auto& parameter : param_groups_[i].params()) {
      const auto state = state_.find(parameter.unsafeGetTensorImpl());
      if (state != state_.end()) {
        GenericDict tensors = string_dict();
        for (const auto& [key, tensor] : state_tensors(*state->second)) tensors.insert(key, tensor);
        if (!tensors.empty()) states.insert(index, tensors);
      }
      group.params.push_back(index++);
    }
    StateVisitor dict;
    visit_group(group, dict);
    groups.push_back(dict.dict());
  }
  GenericDict all = string_dict();
  all.insert("state", states);
  all.insert("param_groups", groups);
  return all;
}

// Rounding in a schedule may make a rate slightly negative, so negative rates are accepted here.
void Optimizer::check_reached(const Options& options) const {
  const auto copy = options.clone();
  copy->set_lr(std::abs(options.get_lr()));
  check(*copy);
}

void Optimizer::load_state_dict(const IValue& state_dict) {
  check_new_groups();  // with the options that they were added with
  const std::string where = name_ + "::load_state_dict";
  detail::refuse_in_capture(where);
  StateVisitor reader(state_dict, where);
  GenericDict states = string_dict();
  std::vector<IValue> dicts;
  reader("state", states);
  reader.any_length("param_groups", dicts);
  TORCH_CHECK_VALUE(dicts.size() == param_groups_.size(), where, ": expected ",
                    param_groups_.size(), " parameter groups, got ", dicts.size());

  std::vector<GroupState> groups;
  decltype(state_) new_state;
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& params = param_groups_[i].params();
    auto& group = groups.emplace_back(state_of_group(i));
    StateVisitor group_reader(dicts[i], where);
    visit_group(group, group_reader);
    TORCH_CHECK_VALUE(group.params.size() == params.size(), where, ": expected a group of ",
                      params.size(), " parameters, got ", group.params.size());
    check_reached(*group.options);
    for (size_t k = 0; k < params.size(); ++k) {
      const auto found = states.find(group.params[k]);
      if (found == states.end()) continue;
      Tensors tensors;
      const StateVisitor of_param(found->value(), where + ": 'state'");
      for (const auto& entry : of_param.dict()) {
        const IValue& value = entry.value();
        if (value.isTensor()) tensors[entry.key().toStringRef()] = value.toTensor();
        if (value.isScalar()) {  // step counts of older PyTorch versions
          tensors[entry.key().toStringRef()] = at::scalar_tensor(value.toScalar(), at::kFloat);
        }
      }
      new_state[params[k].unsafeGetTensorImpl()] = make_state(tensors, params[k]);
    }
  }

  group_values_->resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    param_groups_[i].set_options(std::move(groups[i].options));
    group_values_->at(i) = std::move(groups[i].values);
  }
  rewrite_lr();
  state_.swap(new_state);
  state_replaced();
}

}  // namespace sconce::optim
