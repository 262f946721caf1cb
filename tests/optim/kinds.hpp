#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sconce/optim/optimizer.hpp"

// Describes each optimizer class for the tests that cover all optimizers. Each class's test file
// adds a row.
namespace sconce::test {

using Groups = std::vector<torch::optim::OptimizerParamGroup>;

/// The options for a random run. `first` and `second` are the momentum and the dampening or alpha,
/// the betas, rho, or Adagrad's lr_decay and initial_accumulator_value. `flag` is nesterov,
/// amsgrad, centered, or decoupled_weight_decay.
struct RandomOptions {
  double lr = 0.1, weight_decay = 0, first = 0.9, second = 0;
  bool flag = false;

  const char* python_flag() const { return flag ? "True" : "False"; }
};

/// The number of host reads in a step, in addition to one read per group for a tensor learning
/// rate.
struct ReadsPerParameter {
  int fused = 0;               ///< by the fused kernels
  int for_loop_tensor_lr = 0;  ///< by the for-loop kernels, if the learning rate is a tensor
};

/// Describes an optimizer class.
struct Kind {
  std::string name = {};                           ///< the name in Python
  optim::Kernels fastest = optim::Kernels::fused;  ///< slower kernels are also supported
  bool takes_sparse = false;
  bool foreach_takes_tensor_lr = true;
  ReadsPerParameter reads = {};
  std::vector<std::string> optional_keys = {};  ///< of the optimizer state

  /// Returns the Python arguments for a random run, excluding the arguments that all classes share.
  std::function<std::string(const RandomOptions&)> python_arguments = {};
  std::function<std::unique_ptr<optim::Optimizer>(const Groups&, const RandomOptions&,
                                                  const optim::ExtraOptions&)>
      make_random = {};

  /// Creates an optimizer whose state contains all possible tensors. `choice` selects one of the
  /// option sets.
  std::function<std::unique_ptr<optim::Optimizer>(const Groups&, double lr,
                                                  const optim::ExtraOptions&, size_t choice)>
      make_choice = {};
  size_t choices = 1;
  /// Creates an optimizer with one group. Throws if the list is empty.
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<torch::Tensor>&)> make_list =
      {};
  /// Returns options with the given learning rate and class defaults for everything else.
  std::function<std::unique_ptr<torch::optim::OptimizerOptions>(double lr)> options = {};

  std::unique_ptr<optim::Optimizer> make(const Groups& groups, double lr,
                                         const optim::ExtraOptions& extra = {}) const {
    return make_choice(groups, lr, extra, 0);
  }
  bool has(optim::Kernels kernels) const {
    return kernels == optim::Kernels::automatic || kernels >= fastest;
  }
  bool has_fused() const { return fastest == optim::Kernels::fused; }
  /// Returns whether a step avoids all host reads when the learning rate is on a GPU.
  bool is_capturable() const { return fastest != optim::Kernels::for_loop; }
};

/// Returns the row for a class with the given option sets, each with a learning rate.
template <class Optimizer, class Options>
Kind with_choices(Kind kind, const std::vector<Options>& choices) {
  const auto with_lr = [choices](double lr, size_t choice) {
    auto options = choices[choice];
    options.lr(lr);
    return options;
  };
  kind.choices = choices.size();
  kind.make_choice = [with_lr](const Groups& groups, double lr, const optim::ExtraOptions& extra,
                               size_t choice) {
    return std::make_unique<Optimizer>(groups, with_lr(lr, choice), extra);
  };
  kind.make_list = [with_lr](const std::vector<torch::Tensor>& parameters) {
    return std::make_unique<Optimizer>(parameters, with_lr(0.1, 0));
  };
  kind.options = [with_lr](double lr) { return std::make_unique<Options>(with_lr(lr, 0)); };
  return kind;
}

/// Returns all rows.
inline std::vector<Kind>& kinds() {
  static std::vector<Kind> all;
  return all;
}

inline const Kind& kind_named(const std::string& name) {
  for (const auto& kind : kinds()) {
    if (kind.name == name) return kind;
  }
  throw std::logic_error("no test file has added " + name);
}

/// Adds a row before the tests run.
struct AddKind {
  explicit AddKind(Kind kind) { kinds().push_back(std::move(kind)); }
};

/// Calls `check(kind, kernels)` for each class with each kind of kernels that the class supports.
template <class Check>
void for_each_kind(const Check& check) {
  for (const auto& kind : kinds()) {
    for (const auto kernels :
         {optim::Kernels::fused, optim::Kernels::foreach, optim::Kernels::for_loop}) {
      if (!kind.has(kernels)) continue;
      INFO(kind.name << " with kernels " << static_cast<int>(kernels));
      check(kind, kernels);
    }
  }
}

/// Returns the text that `<<` writes for the values.
template <class... Values>
std::string text(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

}  // namespace sconce::test
