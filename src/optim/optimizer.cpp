#include "sconce/optim/optimizer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/ScopeExit.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>
#include <unordered_set>
#include <utility>

#include "host_call.hpp"
#include "optim/algorithm.hpp"
#include "optim/geometry.hpp"
#include "optim/group_condition.hpp"
#include "optim/group_rates.hpp"
#include "state/optimizer_dict.hpp"
#include "tensor_groups.hpp"

namespace sconce::optim {

namespace {

using c10::IValue;

// LibTorch 2.15 merges a group's options with the optimizer's options only for LibTorch's own
// option types. For other types, LibTorch uses only the optimizer's options.
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

// Returns the defaults. If `tensor` is set, the default learning rate is replaced by the value of
// `tensor`.
std::unique_ptr<torch::optim::OptimizerOptions> with_tensor_lr(
    std::unique_ptr<torch::optim::OptimizerOptions> defaults,
    const std::optional<torch::Tensor>& tensor, const std::string& name) {
  if (!tensor) return defaults;
  TORCH_CHECK_VALUE(tensor->defined() && tensor->numel() == 1, name,
                    ": expected a tensor lr with 1 element");
  TORCH_CHECK_VALUE(at::isFloatingType(tensor->scalar_type()), name,
                    ": expected a floating-point tensor lr, got a tensor of type ",
                    tensor->scalar_type());
  const double lr = tensor->item<double>();
  TORCH_CHECK_VALUE(lr >= 0, name, ": expected lr >= 0, got ", lr);
  defaults->set_lr(lr);
  return defaults;
}

}  // namespace

Optimizer::Optimizer(std::unique_ptr<Algorithm> algorithm, const std::vector<ParamGroup>& groups,
                     std::unique_ptr<Options> defaults, ExtraOptions extra)
    : torch::optim::Optimizer(groups,
                              with_tensor_lr(std::move(defaults), extra.lr, algorithm->name())),
      algorithm_(std::move(algorithm)),
      group_values_(std::make_shared<std::vector<GroupValues>>()) {
  algorithm_->choose_kernels(std::move(extra), param_groups_);
  for (size_t i = 0; i < groups.size(); ++i) {
    keep_options_of_other_types(groups[i], param_groups_[i]);
  }
  if (const auto& lr = algorithm_->extra().lr) {
    rates_ = std::make_unique<GroupRates>(param_groups_, *defaults_, *lr);
  }
  algorithm_->check(*defaults_);
  for (const auto& group : param_groups_) algorithm_->check(group.options());
  check_new_groups();
  algorithm_->make_first_states(*this);
}

Optimizer::~Optimizer() = default;

Kernels Optimizer::kernels() const {
  return algorithm_->kernels();
}

bool Optimizer::is_capturable() const {
  return all_are_on(c10::kCPU, param_groups_) ||
         (algorithm_->supports_lr_on_device() && all_are_on(c10::kCUDA, param_groups_));
}

void Optimizer::write_lr() {
  if (rates_) rates_->write();
}

void Optimizer::read_lr() {
  if (rates_) rates_->read();
}

// In C++, `parameters()` returns a layer's parameters once for each occurrence of the layer.
void Optimizer::drop_duplicates(ParamGroup& group) {
  std::unordered_set<const void*> other_parameters;
  for (size_t i = 0; i < checked_groups_; ++i) {
    for (const auto& p : param_groups_[i].params())
      other_parameters.insert(p.unsafeGetTensorImpl());
  }
  SeenTensors seen;
  std::vector<torch::Tensor> once;
  for (const auto& parameter : group.params()) {
    TORCH_CHECK_VALUE(!other_parameters.contains(parameter.unsafeGetTensorImpl()),
                      algorithm_->name(),
                      ": expected each parameter in only one group, got a parameter in two groups");
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) once.push_back(parameter);
  }
  group.params() = std::move(once);
}

// The kernels that were chosen for the existing groups may not support the added group.
void Optimizer::choose_again() {
  const Kernels before = kernels();
  const Kernels chosen = algorithm_->chosen_kernels(param_groups_);
  if (algorithm_->extra().kernels != Kernels::automatic || before == chosen) return;
  algorithm_->set_kernels(chosen);
  auto undo = c10::make_scope_exit([&] { algorithm_->set_kernels(before); });
  renew_states();
  undo.release();
  algorithm_->forget_plans();
}

// Converts every state to the form used by the kernels.
void Optimizer::renew_states() {
  decltype(state_) renewed;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      const auto found = state_.find(parameter.unsafeGetTensorImpl());
      if (found == state_.end()) continue;
      renewed[found->first] =
          algorithm_->make_state(algorithm_->state_tensors(*found->second), parameter);
    }
  }
  for (auto& [key, state] : renewed) state_[key] = std::move(state);
}

void Optimizer::add_param_group(const ParamGroup& param_group) {
  detail::check_not_capturing(algorithm_->name() + "::add_param_group");
  check_new_groups();
  write_lr();
  if (rates_) rates_->read_defaults();  // used by groups without a separate rate
  {
    // LibTorch rejects parameters that have a state, even if they no longer belong to a group.
    decltype(state_) states;
    states.swap(state_);
    const auto restore_state = c10::make_scope_exit([&] { states.swap(state_); });
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
    drop_duplicates(group);
    choose_again();
    for (const auto& parameter : group.params()) algorithm_->check_parameter(parameter);
  }
}

// Rounding in a schedule may produce a slightly negative learning rate, so negative rates are
// accepted here.
void Optimizer::check_reached(const Options& options) const {
  const auto copy = options.clone();
  copy->set_lr(std::abs(options.get_lr()));
  algorithm_->check(*copy);
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
  step_all({}, {});
  return loss;
}

void Optimizer::step_with_amp_scaling(const torch::Tensor& grad_scale,
                                      const torch::Tensor& found_inf) {
  TORCH_CHECK(kernels() == Kernels::fused, algorithm_->name(),
              "::step_with_amp_scaling: expected Kernels::fused, got different kernels");
  const auto one_float = [](const torch::Tensor& tensor) {
    return tensor.numel() == 1 && tensor.scalar_type() == at::kFloat;
  };
  TORCH_CHECK(found_inf.defined() && one_float(found_inf) &&
                  (!grad_scale.defined() || one_float(grad_scale)),
              algorithm_->name(),
              "::step_with_amp_scaling: expected float32 tensors with one element");
  step_all(grad_scale, found_inf.reshape({}));
}

bool Optimizer::has_sparse_gradient() const {
  return std::any_of(param_groups_.begin(), param_groups_.end(), [](const auto& group) {
    return std::any_of(group.params().begin(), group.params().end(), [](const auto& parameter) {
      return parameter.grad().defined() && parameter.grad().is_sparse();
    });
  });
}

bool Optimizer::step_supports_amp_scaling() const {
  return kernels() == Kernels::fused &&
         (algorithm_->extra().kernels == Kernels::fused || !has_sparse_gradient());
}

void Optimizer::step_all(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) {
  depend_on_groups(*this);
  detail::run_and_record([this, grad_scale, found_inf] { step_now(grad_scale, found_inf); });
}

void Optimizer::step_now(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  check_new_groups();
  // All checks run before the first change, because a partially completed step could not be
  // repeated.
  const bool supports_sparse = algorithm_->supports_sparse_gradients() && !found_inf.defined();
  const size_t count = param_groups_.size();
  bool is_sparse = false;
  for (size_t i = 0; i < count; ++i) is_sparse |= algorithm_->prepare_group(*this, i);
  TORCH_CHECK(
      supports_sparse || !is_sparse, algorithm_->name(),
      ": expected dense gradients, got a sparse gradient, which these kernels do not support");
  write_lr();
  ExtraOptions extra = algorithm_->extra();
  for (size_t i = 0; i < count; ++i) {
    if (rates_) extra.lr = rates_->group_tensor(i);
    algorithm_->step_group(i, param_groups_[i].options(), extra, {grad_scale, found_inf});
  }
}

void Optimizer::save(torch::serialize::OutputArchive& archive) const {
  if (rates_) rates_->read_all();
  algorithm_->write(archive, *this);
}

// Uses the table's own swap function here and below, because std::swap would move the table. The
// noexcept move allocates memory, so running out of memory would terminate the process.
void Optimizer::load(torch::serialize::InputArchive& archive) {
  check_new_groups();  // with the options that were set when they were added
  std::vector<std::unique_ptr<Options>> options;
  for (const auto& group : param_groups_) options.push_back(group.options().clone());
  decltype(state_) before;
  before.swap(state_);
  try {
    algorithm_->read(archive, *this);
    renew_states();
  } catch (...) {
    before.swap(state_);
    for (size_t i = 0; i < options.size(); ++i) {
      param_groups_[i].set_options(std::move(options[i]));
    }
    throw;
  }
  algorithm_->forget_plans();
  if (rates_) rates_->rewrite();
}

// Writes and reads the parts of a state dict. `values` contains the values that schedulers store
// for each group.
class Optimizer::DictForm : public OptimizerDictForm {
 public:
  DictForm(const Optimizer& optimizer, std::string where)
      : optimizer_(optimizer), where_(std::move(where)), values(*optimizer.group_values_) {
    values.resize(optimizer.param_groups_.size());
  }

  void visit_group(size_t index, Options& options, StateVisitor& group) override {
    const auto& algorithm = *optimizer_.algorithm_;
    const bool is_fused = algorithm.kernels() == Kernels::fused;
    algorithm.visit_options(options, group);
    if (optimizer_.rates_) group.write_only("lr", optimizer_.rates_->group_tensor(index));
    bool maximize = algorithm.extra().maximize;
    group("maximize", maximize, false);
    TORCH_CHECK_VALUE(maximize == algorithm.extra().maximize, where_,
                      ": expected maximize=", algorithm.extra().maximize,
                      " (this optimizer's setting), got ", maximize);
    group.write_only("foreach",
                     is_fused ? IValue() : IValue(algorithm.kernels() == Kernels::foreach));
    group.write_only("differentiable", false);
    const bool fused_in_python = is_fused && (algorithm.traits().python_has_fused_on_gpu ||
                                              all_are_on(c10::kCPU, optimizer_.param_groups_));
    group.write_only("fused", fused_in_python ? IValue(true) : IValue());
    for (const char* key :
         {"base_momentum", "initial_lr", "max_lr", "max_momentum", "min_lr", "swa_lr"}) {
      std::optional<double> value;
      if (const auto found = values[index].find(key); found != values[index].end()) {
        value = found->second;
      }
      group.optional_value(key, value);
      if (value) values[index][key] = *value;
    }
  }

  void check(const Options& options) const override { optimizer_.check_reached(options); }

  std::optional<c10::impl::GenericDict> write_state(const ParamState& state,
                                                    const Options&) const override {
    auto dict = string_dict();
    for (const auto& [key, tensor] : optimizer_.algorithm_->state_tensors(state)) {
      dict.insert(key, tensor);
    }
    return dict.empty() ? std::nullopt : std::optional(dict);
  }

  std::unique_ptr<ParamState> read_state(const IValue& dict, const Parameters& parameters,
                                         size_t index, const Options&) const override {
    Algorithm::Tensors tensors;
    const StateVisitor param_state(dict, where_ + ": 'state'");
    for (const auto& entry : param_state.dict()) {
      const IValue& value = entry.value();
      if (value.isTensor()) tensors[entry.key().toStringRef()] = value.toTensor();
      if (value.isScalar()) {  // step counts from older PyTorch versions
        tensors[entry.key().toStringRef()] = at::scalar_tensor(value.toScalar(), at::kFloat);
      }
    }
    return optimizer_.algorithm_->make_state(tensors, parameters[index]);
  }

 private:
  const Optimizer& optimizer_;
  std::string where_;

 public:
  std::vector<GroupValues> values;
};

IValue Optimizer::state_dict() const {
  if (rates_) rates_->read_all();
  DictForm form(*this, algorithm_->name());
  return write_optimizer(*this, form);
}

IValue Optimizer::options() const {
  if (rates_) rates_->read_all();
  DictForm form(*this, algorithm_->name());
  return write_groups(*this, form);
}

void Optimizer::load_state_dict(const IValue& state_dict) {
  check_new_groups();  // with the options that were set when they were added
  const std::string where = algorithm_->name() + "::load_state_dict";
  detail::check_not_capturing(where);
  DictForm form(*this, where);
  auto read = read_optimizer(*this, state_dict, where, form);
  *group_values_ = std::move(form.values);
  for (size_t i = 0; i < read.options.size(); ++i) {
    param_groups_[i].set_options(std::move(read.options[i]));
  }
  if (rates_) rates_->rewrite();
  state_.swap(read.states);
  algorithm_->forget_plans();
}

}  // namespace sconce::optim
