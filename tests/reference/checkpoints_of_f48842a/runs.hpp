#pragma once

// The training and optimizer runs that wrote the files in this folder, updated to the current API
// names. As in checkpoints_of_0.2/trainings.hpp, all CPUs must compute bitwise identical results if
// their square roots are correctly rounded: see support/recorded_numbers.hpp.

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../checkpoints_of_0.2/trainings.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"

namespace sconce::test::of_f48842a {

using of_0_2::Training;
using optim::ExtraOptions;
using optim::Kernels;
using Parameters = std::vector<torch::Tensor>;
using Groups = std::vector<torch::optim::OptimizerParamGroup>;

inline auto sgd_options() {
  return torch::optim::SGDOptions(0.125).momentum(0.5).dampening(0.25);
}
inline auto adam_options() {
  return torch::optim::AdamOptions(0.125).betas({0.5, 0.75}).amsgrad(true);
}
inline auto adamw_options() {
  return torch::optim::AdamWOptions(0.125).betas({0.5, 0.75}).weight_decay(0.25);
}
inline auto adagrad_options() {
  return torch::optim::AdagradOptions(0.125).initial_accumulator_value(0.5);
}
inline auto rmsprop_options() {
  return torch::optim::RMSpropOptions(0.125).alpha(0.75).momentum(0.5).centered(true).eps(0.25);
}
inline auto nadam_options() {
  return optim::NAdamOptions(0.125)
      .betas({0.5, 0.75})
      .weight_decay(0.25)
      .decoupled_weight_decay(true);
}

/// The training runs, keyed by optimizer name. Each run has one checkpoint, saved in the second
/// epoch.
inline std::map<std::string, std::function<void(Training&)>> trainings() {
  return {{"SGD", [](Training& t) { t.optimize<optim::SGD>(sgd_options()); }},
          {"Adam", [](Training& t) { t.optimize<optim::Adam>(adam_options()); }},
          {"AdamW", [](Training& t) { t.optimize<optim::AdamW>(adamw_options()); }},
          {"Adagrad", [](Training& t) { t.optimize<optim::Adagrad>(adagrad_options()); }},
          {"RMSprop", [](Training& t) { t.optimize<optim::RMSprop>(rmsprop_options()); }},
          {"NAdam", [](Training& t) { t.optimize<optim::NAdam>(nadam_options()); }}};
}

/// A series of steps with one optimizer, which is saved halfway through.
struct Run {
  std::string name = {};
  std::function<std::unique_ptr<optim::Optimizer>(const Groups&)> make = {};
  bool first_steps_overflow = false;  ///< whether all steps before the save are skipped
};

template <class Optimizer, class Options>
Run run_of(const std::string& name, const Options& options, const ExtraOptions& extra) {
  return {name, [=](const Groups& groups) {
            auto own = extra;
            if (extra.lr) own.lr = extra.lr->clone();
            return std::make_unique<Optimizer>(groups, options, own);
          }};
}

/// The runs for one optimizer class: one with each kind of kernel, and one with a tensor as the
/// learning rate.
template <class Optimizer, class Options>
std::vector<Run> runs_of(const Options& options, Kernels fastest) {
  std::vector<Run> runs;
  if (fastest == Kernels::fused) {
    runs.push_back(run_of<Optimizer>("fused", options, {.kernels = Kernels::fused}));
  }
  runs.push_back(run_of<Optimizer>("foreach", options, {.kernels = Kernels::foreach}));
  runs.push_back(run_of<Optimizer>("for_loop", options, {.kernels = Kernels::for_loop}));
  runs.push_back(run_of<Optimizer>("tensor_lr", options, {.lr = torch::tensor(0.125F)}));
  return runs;
}

/// All runs, keyed by optimizer name.
inline std::map<std::string, std::vector<Run>> runs() {
  std::map<std::string, std::vector<Run>> all = {
      {"SGD", runs_of<optim::SGD>(sgd_options(), Kernels::fused)},
      {"Adam", runs_of<optim::Adam>(adam_options(), Kernels::fused)},
      {"AdamW", runs_of<optim::AdamW>(adamw_options(), Kernels::fused)},
      {"Adagrad", runs_of<optim::Adagrad>(adagrad_options(), Kernels::fused)},
      {"RMSprop", runs_of<optim::RMSprop>(rmsprop_options(), Kernels::foreach)},
      {"NAdam", runs_of<optim::NAdam>(nadam_options(), Kernels::foreach)}};
  all["SGD"].push_back(run_of<optim::SGD>("first_step_pending", sgd_options(), {}));
  all["SGD"].back().first_steps_overflow = true;
  return all;
}

/// The parameters for two groups. The last parameter has a gradient only in every other step.
inline Parameters make_parameters() {
  return {torch::tensor({0.5F, -1.0F}).requires_grad_(), torch::tensor(2.0F).requires_grad_(),
          torch::tensor({1.5F}).requires_grad_()};
}

inline std::unique_ptr<optim::Optimizer> make_optimizer(const Run& run, const Parameters& p) {
  auto optimizer = run.make({Groups::value_type({p[0]}), Groups::value_type({p[1], p[2]})});
  optimizer->param_groups()[1].options().set_lr(0.25);
  return optimizer;
}

constexpr int saved_after = 4, all_steps = 7;

/// Runs the steps [first, last).
inline void step(const Run& run, optim::Optimizer& optimizer, const Parameters& parameters,
                 int first, int last) {
  for (int i = first; i < last; ++i) {
    for (size_t k = 0; k < parameters.size(); ++k) {
      const auto& p = parameters[k];
      const auto value = static_cast<float>((i * 3 + static_cast<int>(k) * 5) % 7 - 2) / 2;
      p.mutable_grad() = k == 2 && i % 2 == 1 ? torch::Tensor() : torch::full_like(p, value);
    }
    if (run.first_steps_overflow && i < saved_after) {
      optimizer.step_with_amp_scaling({}, torch::ones({}));
    } else {
      optimizer.step();
    }
  }
}

/// Returns all numbers in the parameters and the state, in double precision.
inline torch::Tensor all_numbers(const optim::Optimizer& optimizer, const Parameters& parameters) {
  std::vector<torch::Tensor> parts;
  const auto add = [&](const torch::Tensor& tensor) {
    parts.push_back(tensor.detach().to(torch::kDouble).reshape({-1}));
  };
  for (const auto& parameter : parameters) add(parameter);
  const auto states = optimizer.state_dict().toGenericDict().at("state").toGenericDict();
  for (const auto& state : states) {
    std::map<std::string, torch::Tensor> sorted;
    for (const auto& entry : state.value().toGenericDict()) {
      sorted[entry.key().toStringRef()] = entry.value().toTensor();
    }
    for (const auto& [key, tensor] : sorted) add(tensor);
  }
  return torch::cat(parts);
}

}  // namespace sconce::test::of_f48842a
