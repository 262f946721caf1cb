#pragma once

#include <ATen/core/ivalue.h>

#include <concepts>
#include <functional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {
class ExponentialMovingAverage;
}  // namespace sconce::optim

namespace sconce {

namespace detail {
/// Returns a class name without namespaces, so that checkpoints do not depend on namespaces.
std::string class_name(const std::type_info& type);
}  // namespace detail

/// An object whose state is stored in a checkpoint. The caller must keep the object alive.
/// Python: `torch.distributed.checkpoint.stateful.Stateful`.
class Stateful {
 public:
  /// Constructs a Stateful that has no state. The state dict is None, and loading a state has no
  /// effect.
  Stateful() : Stateful([] { return c10::IValue(); }, [](const c10::IValue&) {}) {}

  /// Uses the object's `state_dict` as its state. The object may be a sconce optimizer or
  /// scheduler, a scaler, or an instance of your own class. If the object defines an `options()`
  /// function that returns a `c10::IValue`, the result is used as the object's options.
  template <class T>
    requires(!std::same_as<T, Stateful>) && requires(T& object, const c10::IValue& state) {
      { std::as_const(object).state_dict() } -> std::convertible_to<c10::IValue>;
      object.load_state_dict(state);
    }
  Stateful(T& object)
      : state_dict_([&object] { return c10::IValue(std::as_const(object).state_dict()); }),
        load_state_dict_([&object](const c10::IValue& state) { object.load_state_dict(state); }),
        type_(detail::class_name(typeid(object))) {
    if constexpr (requires {
                    { std::as_const(object).options() } -> std::same_as<c10::IValue>;
                  }) {
      options_ = [&object] { return std::as_const(object).options(); };
    }
  }

  /// Constructs a Stateful for a module. The state is a dict of the module's tensors, with the same
  /// names as in Python.
  Stateful(torch::nn::Module& module);
  /// Constructs a Stateful for an optimizer. The state of a LibTorch optimizer
  /// (`torch::optim::Adagrad`, `Adam`, `AdamW`, `LBFGS`, `RMSprop`, or `SGD`) is a dict with the
  /// same keys as Python's `state_dict()`. State dicts from Python can also be loaded. For a sconce
  /// optimizer, the state is the dict returned by `state_dict`.
  /// @throw c10::Error for any other class that does not define `state_dict`. The message contains
  /// the class name.
  Stateful(torch::optim::Optimizer& optimizer);
  /// Constructs a Stateful for a model's averages. The state is a dict of tensors and has the same
  /// keys as the averages' `state_dict`.
  Stateful(optim::ExponentialMovingAverage& averages);

  /// Constructs a Stateful from functions. `type` is either empty or a name that must match when
  /// the state is loaded.
  Stateful(std::function<c10::IValue()> state_dict,
           std::function<void(const c10::IValue&)> load_state_dict, std::string type = {},
           std::function<c10::IValue()> options = {})
      : state_dict_(std::move(state_dict)),
        load_state_dict_(std::move(load_state_dict)),
        options_(std::move(options)),
        type_(std::move(type)) {}

  /// Returns the object's state.
  c10::IValue state_dict() const { return state_dict_(); }
  /// Restores the object's state. Exceptions thrown by the object are propagated.
  void load_state_dict(const c10::IValue& state) const { load_state_dict_(state); }

  /// Returns the object's options. A resumed fit compares them with the options in the file.
  /// Returns None if the object has no options.
  c10::IValue options() const { return options_ ? options_() : c10::IValue(); }

  /// Returns the object's class name without namespaces, or an empty string for a module. The name
  /// distinguishes optimizers and schedulers that would accept the same state.
  const std::string& type() const { return type_; }

  /// Sets the names used for this part in earlier versions of the program. Checkpoints that contain
  /// a former name instead of the current name can also be loaded.
  void set_former_names(std::vector<std::string> names) { former_names_ = std::move(names); }
  /// Returns the names used for this part in earlier versions of the program.
  const std::vector<std::string>& former_names() const { return former_names_; }

 private:
  std::function<c10::IValue()> state_dict_;
  std::function<void(const c10::IValue&)> load_state_dict_;
  std::function<c10::IValue()> options_ = {};
  std::string type_ = {};
  std::vector<std::string> former_names_ = {};
};

/// A run's named parts, in the order in which they are loaded.
using NamedStates = std::vector<std::pair<std::string, Stateful>>;

}  // namespace sconce
