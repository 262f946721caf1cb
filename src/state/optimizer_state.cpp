#include "state/optimizer_state.hpp"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "optim/conversions.hpp"
#include "sconce/optim/optimizer.hpp"
#include "state/optimizer_dict.hpp"

namespace sconce::optim {

namespace {

using c10::IValue;
using LibTorchOptimizer = torch::optim::Optimizer;
using Parameters = std::vector<at::Tensor>;

// Writes or reads the state of a single parameter.
class ParamStateVisitor {
 public:
  // Creates a visitor that writes state.
  ParamStateVisitor() = default;
  // Creates a visitor that reads state. Tensors are converted to the type and device of `like` and
  // must have the same sizes as `like`.
  ParamStateVisitor(const IValue& state, std::string where, at::Tensor like)
      : state_(state, std::move(where)), like_(std::move(like)) {}

  c10::impl::GenericDict dict() const { return state_.dict(); }

  void number(const char* key, double& value) { state_(key, value); }
  void count(const char* key, int64_t& value) { state_.count(key, value); }

  // Python stores the count in float32, which is exact up to 2^24.
  void steps(const char* key, int64_t& steps) {
    auto count = static_cast<double>(steps);
    state_(key, count);
    state_.check(count >= 0 && count <= most_steps && count == std::floor(count),
                 "a number of steps");
    steps = static_cast<int64_t>(count);
    const auto type = steps < (1 << 24) ? at::kFloat : at::kDouble;
    state_.write_only(key, at::scalar_tensor(steps, type));
  }

  // An optional tensor may be undefined in C++. Python represents an undefined tensor as None or
  // omits the tensor's key.
  void tensor(const char* key, at::Tensor& value, bool is_needed = true, bool is_number = false) {
    if (is_needed) {
      state_(key, value);
    } else if (!state_.dict().contains(key) || !state_.value(key).isNone()) {
      auto optional_tensor = value.defined() ? std::optional(value) : std::nullopt;
      state_.optional_value(key, optional_tensor);
      value = optional_tensor.value_or(at::Tensor());
    }
    if (value.defined()) fit(value, is_number);
  }

  void tensors(const char* key, std::deque<at::Tensor>& values, bool are_numbers = false) {
    Parameters list(values.begin(), values.end());
    state_.any_length(key, list);
    for (auto& value : list) fit(value, are_numbers);
    values.assign(list.begin(), list.end());
  }

  void check(bool holds, const char* range) const { state_.check(holds, range); }

 private:
  void fit(at::Tensor& value, bool is_number) const {
    if (!like_.defined()) return;
    const auto sizes = is_number ? at::IntArrayRef() : like_.sizes();
    state_.check(value.sizes() == sizes, c10::str("of sizes ", sizes).c_str());
    value = value.detach().to(like_.device(), like_.scalar_type(), false, /*copy=*/true);
  }

  StateVisitor state_;
  at::Tensor like_ = {};
};

// Each form struct lists the options and the state of one optimizer class, with the keys used in
// Python. `like` returns a tensor with the sizes, type, and device of a parameter's state.
struct ElementwiseForm {
  static constexpr bool needs_state = false;  // whether a step needs every state
  static at::Tensor like(const Parameters& parameters, size_t index) { return parameters[index]; }
};

struct SGDForm : ElementwiseForm {
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;

  static void visit_options(Options& options, StateVisitor& state) {
    state("lr", options.lr());
    state("momentum", options.momentum());
    state("dampening", options.dampening());
    state("weight_decay", options.weight_decay());
    state("nesterov", options.nesterov());
  }
  static void visit_state(State& s, const Options&, ParamStateVisitor& state) {
    state.tensor("momentum_buffer", s.momentum_buffer(), /*is_needed=*/false);
  }
};

template <class AdamOptions, class AdamState, bool is_adamw>
struct AdamForm : ElementwiseForm {
  using Options = AdamOptions;
  using State = AdamState;

  static void visit_options(Options& options, StateVisitor& state) {
    state("lr", options.lr());
    state("betas", options.betas());
    state("eps", options.eps());
    state("weight_decay", options.weight_decay());
    state("amsgrad", options.amsgrad());
    bool decoupled = is_adamw;
    state("decoupled_weight_decay", decoupled, is_adamw);
    state.check(decoupled == is_adamw, is_adamw ? "true, as in AdamW" : "false, as in Adam");
  }
  static void visit_state(State& s, const Options& options, ParamStateVisitor& state) {
    state.steps("step", s.step());
    state.tensor("exp_avg", s.exp_avg());
    state.tensor("exp_avg_sq", s.exp_avg_sq());
    state.tensor("max_exp_avg_sq", s.max_exp_avg_sq(), options.amsgrad());
  }
};

struct RMSpropForm : ElementwiseForm {
  using Options = torch::optim::RMSpropOptions;
  using State = torch::optim::RMSpropParamState;

  static void visit_options(Options& options, StateVisitor& state) {
    state("lr", options.lr());
    state("alpha", options.alpha());
    state("eps", options.eps());
    state("weight_decay", options.weight_decay());
    state("momentum", options.momentum());
    state("centered", options.centered());
  }
  static void visit_state(State& s, const Options& options, ParamStateVisitor& state) {
    state.steps("step", s.step());
    state.tensor("square_avg", s.square_avg());
    state.tensor("momentum_buffer", s.momentum_buffer(), options.momentum() > 0);
    state.tensor("grad_avg", s.grad_avg(), options.centered());
  }
};

struct AdagradForm : ElementwiseForm {
  using Options = torch::optim::AdagradOptions;
  using State = torch::optim::AdagradParamState;
  static constexpr bool needs_state = true;

  static void visit_options(Options& options, StateVisitor& state) {
    state("lr", options.lr());
    state("lr_decay", options.lr_decay());
    state("weight_decay", options.weight_decay());
    state("initial_accumulator_value", options.initial_accumulator_value());
    state("eps", options.eps());
  }
  static void visit_state(State& s, const Options&, ParamStateVisitor& state) {
    state.steps("step", s.step());
    state.tensor("sum", s.sum());
  }
};

// All parameters share one state, which is stored for the first parameter.
struct LBFGSForm {
  using Options = torch::optim::LBFGSOptions;
  using State = torch::optim::LBFGSParamState;
  static constexpr bool needs_state = false;

  static at::Tensor like(const Parameters& parameters, size_t /*index*/) {
    int64_t numel = 0;
    auto type = parameters[0].scalar_type();
    for (const auto& parameter : parameters) {
      numel += parameter.numel();
      type = c10::promoteTypes(type, parameter.scalar_type());
    }
    return at::scalar_tensor(0, parameters[0].options().dtype(type)).expand({numel});
  }
  static void visit_options(Options& options, StateVisitor& state) {
    state("lr", options.lr());
    state("max_iter", options.max_iter());
    state("max_eval", options.max_eval());
    state("tolerance_grad", options.tolerance_grad());
    state("tolerance_change", options.tolerance_change());
    state("history_size", options.history_size());
    state.check(options.history_size() > 0, "above 0");
    state("line_search_fn", options.line_search_fn());
  }
  // Omits Python's "al", because every step writes it before reading it.
  static void visit_state(State& s, const Options& options, ParamStateVisitor& state) {
    state.count("func_evals", s.func_evals());
    state.count("n_iter", s.n_iter());
    state.number("t", s.t());
    state.number("prev_loss", s.prev_loss());
    const bool has_begun = s.n_iter() > 0;
    state.tensor("d", s.d(), has_begun);
    state.tensor("prev_flat_grad", s.prev_flat_grad(), has_begun);
    state.tensor("H_diag", s.H_diag(), has_begun, /*is_number=*/true);
    state.tensors("old_dirs", s.old_dirs());
    const size_t length = s.old_dirs().size();
    state.check(static_cast<int64_t>(length) <= options.history_size(),
                "no longer than 'history_size'");
    state.tensors("old_stps", s.old_stps());
    state.check(s.old_stps().size() == length, "as long as 'old_dirs'");
    state.tensors("ro", s.ro(), /*are_numbers=*/true);
    state.check(s.ro().size() == length, "as long as 'old_dirs'");
  }
};

// The options that all Python optimizer classes share. LibTorch supports only one value for each of
// these options.
void visit_choices(StateVisitor& state) {
  bool maximize = false;
  state("maximize", maximize, false);
  state.check(!maximize, "false");
  for (const char* key : {"foreach", "fused"}) state.write_only(key, IValue());
  for (const char* key : {"capturable", "differentiable"}) state.write_only(key, false);
}

// Writes and reads the parts of a state dict for LibTorch's `Optimizer`.
template <class Optimizer, class Form>
class LibTorchForm : public OptimizerDictForm {
 public:
  explicit LibTorchForm(std::string where) : where_(std::move(where)) {}

  void visit_group(size_t /*index*/, Options& options, StateVisitor& group) override {
    Form::visit_options(options_as<typename Form::Options>(options, where_), group);
    visit_choices(group);
  }

  // Constructs an optimizer, because LibTorch checks the options in the constructor.
  void check(const Options& options) const override {
    auto copy = static_cast<const typename Form::Options&>(options);
    copy.lr(std::abs(copy.lr()));  // a schedule may round to a slightly negative rate
    try {
      Optimizer(Parameters(), copy);
    } catch (const c10::Error& error) {
      TORCH_CHECK_VALUE(false, where_, ": ", error.what_without_backtrace());
    }
  }

  std::optional<c10::impl::GenericDict> write_state(const ParamState& state,
                                                    const Options& options) const override {
    auto values = static_cast<const typename Form::State&>(state);
    ParamStateVisitor dict;
    Form::visit_state(values, static_cast<const typename Form::Options&>(options), dict);
    return dict.dict();
  }

  std::unique_ptr<ParamState> read_state(const IValue& dict, const Parameters& parameters,
                                         size_t index, const Options& options) const override {
    auto values = std::make_unique<typename Form::State>();
    ParamStateVisitor state(dict, where_, Form::like(parameters, index));
    Form::visit_state(*values, static_cast<const typename Form::Options&>(options), state);
    return values;
  }

  bool needs_every_state() const override { return Form::needs_state; }

 private:
  std::string where_;
};

template <class Optimizer, class Form>
IValue state_dict(const LibTorchOptimizer& optimizer) {
  LibTorchForm<Optimizer, Form> form(c10::demangle(typeid(Optimizer).name()));
  return write_optimizer(optimizer, form);
}

template <class Optimizer, class Form>
IValue options(const LibTorchOptimizer& optimizer) {
  LibTorchForm<Optimizer, Form> form(c10::demangle(typeid(Optimizer).name()));
  return write_groups(optimizer, form);
}

template <class Optimizer, class Form>
void load_state_dict(LibTorchOptimizer& optimizer, const IValue& state_dict) {
  const std::string where = c10::demangle(typeid(Optimizer).name()) + ": load_state_dict";
  LibTorchForm<Optimizer, Form> form(where);
  auto read = read_optimizer(optimizer, state_dict, where, form);
  for (size_t i = 0; i < read.options.size(); ++i) {
    optimizer.param_groups()[i].set_options(std::move(read.options[i]));
  }
  optimizer.state().swap(read.states);
}

template <class Optimizer, class Form>
OptimizerState functions() {
  return {state_dict<Optimizer, Form>, options<Optimizer, Form>, load_state_dict<Optimizer, Form>};
}

OptimizerState functions_of_ours() {
  return {[](const LibTorchOptimizer& optimizer) {
            return dynamic_cast<const Optimizer&>(optimizer).state_dict();
          },
          [](const LibTorchOptimizer& optimizer) {
            return dynamic_cast<const Optimizer&>(optimizer).options();
          },
          [](LibTorchOptimizer& optimizer, const IValue& state) {
            dynamic_cast<Optimizer&>(optimizer).load_state_dict(state);
          }};
}

}  // namespace

OptimizerState optimizer_state(const LibTorchOptimizer& optimizer) {
  namespace libtorch = torch::optim;
  if (dynamic_cast<const Optimizer*>(&optimizer) != nullptr) return functions_of_ours();
  // Rejects derived classes, because they may contain more state.
  const auto& type = typeid(optimizer);
  if (type == typeid(libtorch::Adagrad)) return functions<libtorch::Adagrad, AdagradForm>();
  if (type == typeid(libtorch::Adam)) {
    using Form = AdamForm<libtorch::AdamOptions, libtorch::AdamParamState, false>;
    return functions<libtorch::Adam, Form>();
  }
  if (type == typeid(libtorch::AdamW)) {
    using Form = AdamForm<libtorch::AdamWOptions, libtorch::AdamWParamState, true>;
    return functions<libtorch::AdamW, Form>();
  }
  if (type == typeid(libtorch::LBFGS)) return functions<libtorch::LBFGS, LBFGSForm>();
  if (type == typeid(libtorch::RMSprop)) return functions<libtorch::RMSprop, RMSpropForm>();
  if (type == typeid(libtorch::SGD)) return functions<libtorch::SGD, SGDForm>();
  TORCH_CHECK_TYPE(false,
                   "sconce::Stateful: expected a sconce optimizer, a torch::optim optimizer "
                   "(Adagrad, Adam, AdamW, LBFGS, RMSprop, or SGD), or a class with its own "
                   "state_dict and load_state_dict, got a ",
                   c10::demangle(type.name()));
}

}  // namespace sconce::optim
