#pragma once

// Creates an optimizer's algorithm from its table. This is an internal header of src/optim.

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "optim/algorithm.hpp"
#include "optim/conversions.hpp"
#include "optim/gradients.hpp"
#include "optim/learning_rate.hpp"
#include "optim/one_group.hpp"
#include "optim/real_views.hpp"
#include "optim/step_plan.hpp"
#include "optim/table.hpp"
#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

/// The arguments for one step on a group, which are passed to `Table::step`.
template <class Options>
struct Step {
  const Options& options;
  const ExtraOptions& extra;  // if its learning rate is a tensor, it belongs to the group
  const Amp& amp;
  Kernels kernels;
  bool supports_lr_on_device;

  /// Returns whether the bucket can be updated without reading values on the host.
  bool is_on_device(const Bucket& bucket) const {
    return kernels == Kernels::fused || (supports_lr_on_device && bucket.device.is_cuda());
  }
};

/// Updates all parameters in a group, for a class without fused kernels. Overload resolution
/// selects the functions of the class based on its bucket. Each function receives a bucket, the
/// options, the learning rate, and `maximize`:
/// - `step_for_loop` updates the tensors one at a time.
/// - `step_foreach` uses operations on lists of all tensors, and receives real views of complex
///   tensors.
/// - `step_on_device` also uses these operations, but on a GPU and without the host, like Python
///   with `capturable`.
template <class Buckets, class Options>
void step_unfused(Buckets& buckets, const Step<Options>& s) {
  const auto on_host = [&s] { return host_lr(s.options.lr(), s.extra); };
  for (auto& bucket : buckets) {
    bucket.steps.add_one();
    if (s.kernels == Kernels::for_loop) {
      step_for_loop(bucket, s.options, on_host(), s.extra.maximize);
      continue;
    }
    const auto viewed = viewed_as_real(bucket);
    const auto& b = viewed ? *viewed : bucket;
    if (s.is_on_device(b)) {
      step_on_device(b, s.options, device_lr(s.extra, b.device), s.extra.maximize);
    } else {
      step_foreach(b, s.options, on_host(), s.extra.maximize);
    }
  }
}

/// The object passed to `Table::check`, which checks options.
struct Expect {
  const std::string& name;
  const ExtraOptions& extra;

  void at_least_0(const char* option, double value) const {
    TORCH_CHECK_VALUE(value >= 0, name, ": expected ", option, " >= 0, got ", value);
  }
  void betas(const std::tuple<double, double>& betas) const {
    const auto [beta1, beta2] = betas;
    TORCH_CHECK_VALUE(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, name,
                      ": expected betas in [0, 1), got ", beta1, " and ", beta2);
  }
};

/// The bucket for an optimizer class, filled from the fields in the class's table.
template <class Class>
struct TableBucket : Table<Class>::Bucket {
  using Base = typename Table<Class>::Bucket;
  using State = typename Table<Class>::State;
  using Base::Base;

  bool takes(const State& state) const {
    for (const auto& field : Table<Class>::fields) {
      if (field.needed == Needed::always) continue;
      if ((state.*field.member).defined() == (this->*field.list).empty()) return false;
    }
    if constexpr (requires(const Base& base) { base.takes(state); }) return Base::takes(state);
    return true;
  }

  void add(State& state) {
    for (const auto& field : Table<Class>::fields) {
      auto& tensor = state.*field.member;
      if (field.numbers) (this->*field.numbers).add(tensor);
      if (field.list && tensor.defined()) (this->*field.list).push_back(tensor);
    }
    if constexpr (requires(Base& base) { base.add(state); }) Base::add(state);
  }

  template <class StateMap>
  void seal(const StateMap& all_states) {
    for (const auto& field : Table<Class>::fields) {
      if (field.numbers) (this->*field.numbers).seal();
    }
    if constexpr (requires(Base& base) { base.seal(all_states); }) Base::seal(all_states);
  }

  /// Returns all lists of tensors with the same sizes as the parameters.
  auto lists() {
    std::vector<std::vector<at::Tensor>*> all = {&this->params, &this->grads};
    for (const auto& field : Table<Class>::fields) {
      if (field.list) all.push_back(&(this->*field.list));
    }
    return all;
  }
};

template <class Table>
concept SupportsSparse = requires { Table::supports_sparse; };

template <class Table>
concept HasFusedOnCpuOnly = requires { Table::python_has_fused_on_cpu_only; };

/// The algorithm for an optimizer class, which is created from the class's table.
template <class Class>
class AlgorithmOf : public Algorithm {
  using Table = optim::Table<Class>;
  using State = typename Table::State;
  using TypedOptions = typename Table::Options;

 public:
  AlgorithmOf()
      : Algorithm({.name = Table::name,
                   .fastest = Table::fastest,
                   .supports_sparse = SupportsSparse<Table>,
                   .python_has_fused_on_gpu = !HasFusedOnCpuOnly<Table>}) {}

  void check(const Options& options) const override {
    Table::check(typed(options), Expect{name(), extra()});
  }

  void make_first_states(torch::optim::Optimizer& optimizer) const override {
    if constexpr (requires { Table::starts_with_states; }) {
      for (const auto& group : optimizer.param_groups()) {
        for (const auto& parameter : group.params()) {
          if (parameter.numel() == 0) continue;
          optimizer.state()[parameter.unsafeGetTensorImpl()] =
              new_state(parameter, optimizer.defaults());
        }
      }
    }
  }

  bool prepare_group(torch::optim::Optimizer& optimizer, size_t index) override {
    plans_.resize(optimizer.param_groups().size());
    const auto& group = std::as_const(optimizer).param_groups()[index];
    const auto& options = typed(group.options());
    const auto state_of = [&](size_t i) -> State& { return fitting_state(optimizer, index, i); };
    const bool is_sparse =
        plans_[index].update(group.params(), optimizer.state(), optional_fields(options), state_of);
    if constexpr (requires { Table::check_sparse(options, name()); }) {
      if (is_sparse) Table::check_sparse(options, name());
    }
    return is_sparse;
  }

  void step_group(size_t index, const Options& options, const ExtraOptions& extra,
                  const Amp& amp) override {
    auto& plan = plans_[index];
    const Step<TypedOptions> step = {typed(options), extra, amp, kernels(),
                                     supports_lr_on_device()};
    Table::step(plan.buckets(), step);
    bool is_stale = false;
    for (auto& bucket : plan.buckets()) {
      bucket.grads.clear();
      is_stale |= bucket.is_stale;
    }
    if (is_stale) plan.forget();
  }

  void forget_plans() override { plans_.clear(); }

  Tensors state_tensors(const ParamState& state) const override {
    const auto& s = static_cast<const State&>(state);
    Tensors tensors;
    for (const auto& field : Table::fields) {
      const auto& tensor = s.*field.member;
      if (tensor.defined()) tensors[field.key] = field.numbers ? tensor.clone() : tensor;
    }
    if constexpr (requires { Table::is_empty(s); }) {
      if (Table::is_empty(s)) tensors.clear();
    }
    return tensors;
  }

  std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                         const at::Tensor& parameter) const override {
    for (const auto& field : Table::fields) {
      TORCH_CHECK(field.needed != Needed::always || tensors.contains(field.key), name(),
                  ": expected each parameter's state to contain ", field.key);
    }
    auto state = std::make_unique<State>();
    for (const auto& field : Table::fields) {
      (*state).*field.member = field.numbers ? number_for(parameter, tensors.at(field.key))
                                             : copy_for(parameter, tensors, field.key);
    }
    state->owner = StateOwner(parameter);
    return state;
  }

  void visit_options(Options& options, StateVisitor& state) const override {
    Table::visit_options(options_as<TypedOptions>(options, name()), state);
    if constexpr (requires { Table::has_capturable; }) {
      state.write_only("capturable", supports_lr_on_device());
    }
  }

  void write(torch::serialize::OutputArchive& archive,
             const torch::optim::Optimizer& optimizer) const override {
    torch::optim::serialize<State, TypedOptions>(archive, optimizer);
  }

  void read(torch::serialize::InputArchive& archive,
            torch::optim::Optimizer& optimizer) const override {
    torch::optim::serialize<State, TypedOptions>(archive, optimizer);
  }

 private:
  const TypedOptions& typed(const Options& options) const {
    return options_as<const TypedOptions>(options, name());
  }

  // Returns a bit mask of the optional fields that the options use.
  static int optional_fields(const TypedOptions& options) {
    int bits = 0;
    if constexpr (requires { Table::uses(options, Table::fields[0]); }) {
      for (const auto& field : Table::fields) {
        bits = 2 * bits + (field.needed != Needed::always && Table::uses(options, field) ? 1 : 0);
      }
    }
    return bits;
  }

  std::unique_ptr<State> new_state(const at::Tensor& parameter, const Options& defaults) const {
    auto state = std::make_unique<State>();
    for (const auto& field : Table::fields) {
      if (field.needed != Needed::always) continue;
      (*state).*field.member =
          field.numbers ? number_for(parameter, at::scalar_tensor(field.first, at::kFloat))
                        : at::zeros_like(parameter);
    }
    if constexpr (requires { Table::fill(*state, typed(defaults)); }) {
      Table::fill(*state, typed(defaults));
    }
    state->owner = StateOwner(parameter);
    return state;
  }

  // Returns the optimizer state of a parameter that has a gradient. Creates the state if it does
  // not exist, and converts it if it no longer matches the parameter.
  State& fitting_state(torch::optim::Optimizer& optimizer, size_t group, size_t index) const {
    static constexpr auto like = std::find_if(Table::fields.begin(), Table::fields.end(),
                                              [](const auto& f) { return f.list != nullptr; });
    const auto& group_now = std::as_const(optimizer).param_groups()[group];
    const auto& parameter = group_now.params()[index];
    auto& states = optimizer.state();
    auto* const key = parameter.unsafeGetTensorImpl();
    const auto found = states.find(key);
    const auto* old =
        found == states.end() ? nullptr : static_cast<const State*>(found->second.get());
    const bool fits = state_fits(optimizer, group, index, old ? old->*like->member : at::Tensor());
    if (!old) {
      states[key] = new_state(parameter, optimizer.defaults());
    } else if (!fits) {
      found->second = make_state(state_tensors(*old), parameter);
    }
    auto& state = static_cast<State&>(*states[key]);
    state.owner = StateOwner(parameter);  // also for a loaded state
    add_optional(state, typed(group_now.options()), parameter);
    return state;
  }

  // Adds the tensors that the options require.
  static void add_optional(State& state, const TypedOptions& options, const at::Tensor& parameter) {
    if constexpr (requires { Table::uses(options, Table::fields[0]); }) {
      for (const auto& field : Table::fields) {
        auto& tensor = state.*field.member;
        if (field.needed != Needed::by_options || tensor.defined()) continue;
        if (Table::uses(options, field)) tensor = at::zeros_like(parameter);
      }
    }
  }

  std::vector<StepPlan<TableBucket<Class>, State>> plans_ = {};  // one per group
};

/// Writes each option to an archive. `Table::visit_options` calls this object.
struct OptionsWriter {
  torch::serialize::OutputArchive& archive;

  template <class T>
  void operator()(const char* key, const T& option, const T& /*otherwise*/ = {}) const {
    archive.write(key, c10::IValue(option));
  }
};

/// Reads each option from an archive.
struct OptionsReader {
  torch::serialize::InputArchive& archive;

  template <class T>
  void operator()(const char* key, T& option, const T& /*otherwise*/ = {}) const {
    c10::IValue value;
    archive.read(key, value);
    option = value.to<T>();
  }
};

template <class Class, class Derived>
void TableOptions<Class, Derived>::serialize(torch::serialize::OutputArchive& archive) const {
  auto copy = static_cast<const Derived&>(*this);
  Table<Class>::visit_options(copy, OptionsWriter{archive});
}

template <class Class, class Derived>
void TableOptions<Class, Derived>::serialize(torch::serialize::InputArchive& archive) {
  Table<Class>::visit_options(static_cast<Derived&>(*this), OptionsReader{archive});
}

// Like LibTorch archives, these archives omit undefined tensors. A number may be a view of a larger
// tensor. Saving the view would also save the larger tensor, so numbers are cloned.
template <class Class, class Derived>
void TableParamState<Class, Derived>::serialize(torch::serialize::OutputArchive& archive) const {
  const auto& state = static_cast<const Derived&>(*this);
  if constexpr (requires { Table<Class>::is_empty(state); }) {
    if (Table<Class>::is_empty(state)) return;
  }
  for (const auto& field : Table<Class>::fields) {
    const auto& tensor = state.*field.member;
    if (field.is_count) {
      archive.write(field.key, c10::IValue(tensor.template item<int64_t>()));
    } else if (tensor.defined()) {
      archive.write(field.key, c10::IValue(field.numbers ? tensor.clone() : tensor));
    }
  }
}

template <class Class, class Derived>
void TableParamState<Class, Derived>::serialize(torch::serialize::InputArchive& archive) {
  for (const auto& field : Table<Class>::fields) {
    auto& tensor = static_cast<Derived&>(*this).*field.member;
    c10::IValue value;
    if (field.is_count) {
      archive.read(field.key, value);
      tensor = at::scalar_tensor(value.toInt(), at::kFloat);
    } else {
      tensor = archive.try_read(field.key, value) ? value.toTensor() : at::Tensor();
    }
  }
}

template <class Class, class ClassOptions>
OptimizerOf<Class, ClassOptions>::OptimizerOf(
    const std::vector<torch::optim::OptimizerParamGroup>& param_groups, ClassOptions defaults,
    ExtraOptions extra)
    : Optimizer(std::make_unique<AlgorithmOf<Class>>(), param_groups,
                std::make_unique<ClassOptions>(std::move(defaults)), std::move(extra)) {}

// In C++, an empty parameter list usually means that a layer was not registered in its module.
template <class Class, class ClassOptions>
OptimizerOf<Class, ClassOptions>::OptimizerOf(std::vector<torch::Tensor> params,
                                              ClassOptions defaults, ExtraOptions extra)
    : OptimizerOf(one_group(Table<Class>::name, std::move(params)), std::move(defaults),
                  std::move(extra)) {}

// If a group's option equals the default for its type, LibTorch replaces it with the value in
// `defaults`. Therefore, the weight decay is set after construction.
template <class Class, class ClassOptions>
OptimizerOf<Class, ClassOptions>::OptimizerOf(const DecayGroups& groups, ClassOptions defaults,
                                              ExtraOptions extra)
    : OptimizerOf(param_groups_of(groups), std::move(defaults), std::move(extra)) {
  for (size_t i = 0; i < groups.groups.size(); ++i) {
    auto& options = static_cast<ClassOptions&>(this->param_groups_[i].options());
    options.weight_decay(groups.groups[i].weight_decay);
  }
}

}  // namespace sconce::optim
