#include "optimization.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sconce/optim/adadelta.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/adamax.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"

namespace train {

namespace lr_scheduler = sconce::optim::lr_scheduler;

namespace {

using sconce::optim::ExtraOptions;
using Made = std::unique_ptr<torch::optim::Optimizer>;

struct NamedOptimizer {
  std::string name;
  double lr;  // used by default
  Made (*make)(const std::vector<torch::Tensor>& params, double lr, const ExtraOptions& extra);
};

Made make_sgd(const std::vector<torch::Tensor>& params, double lr, const ExtraOptions& extra) {
  return std::make_unique<sconce::optim::SGD>(params, torch::optim::SGDOptions(lr).momentum(0.9),
                                              extra);
}

// Creates an optimizer with the defaults of its Python counterpart.
template <class Optimizer, class Options>
NamedOptimizer as_in_python(const char* name) {
  const auto make = [](const std::vector<torch::Tensor>& params, double lr,
                       const ExtraOptions& extra) -> Made {
    return std::make_unique<Optimizer>(params, Options(lr), extra);
  };
  return {name, Options().lr(), make};
}

const std::vector<NamedOptimizer>& optimizers() {
  using namespace torch::optim;
  namespace optim = sconce::optim;
  static const std::vector<NamedOptimizer> all = {
      {"sgd", 0.05, make_sgd},
      as_in_python<optim::Adam, AdamOptions>("adam"),
      as_in_python<optim::AdamW, AdamWOptions>("adamw"),
      as_in_python<optim::Adagrad, AdagradOptions>("adagrad"),
      as_in_python<optim::RMSprop, RMSpropOptions>("rmsprop"),
      as_in_python<optim::NAdam, optim::NAdamOptions>("nadam"),
      as_in_python<optim::Adadelta, optim::AdadeltaOptions>("adadelta"),
      as_in_python<optim::Adamax, optim::AdamaxOptions>("adamax"),
  };
  return all;
}

const NamedOptimizer& optimizer_named(const std::string& name) {
  const auto& all = optimizers();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const NamedOptimizer& row) { return row.name == name; });
  TORCH_CHECK(found != all.end(), "make_optimizer: unknown optimizer ", name);
  return *found;
}

// Returns whether the optimizer has a momentum or a first beta that `OneCycleLR` can change.
bool has_momentum(const torch::optim::OptimizerOptions& options) {
  return dynamic_cast<const torch::optim::AdagradOptions*>(&options) == nullptr &&
         dynamic_cast<const sconce::optim::AdadeltaOptions*>(&options) == nullptr;
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> listed;
    for (const auto& row : optimizers()) listed.push_back(row.name);
    return listed;
  }();
  return names;
}

double default_lr(const std::string& optimizer) {
  return optimizer_named(optimizer).lr;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<torch::Tensor>& params,
                                                        double lr,
                                                        const sconce::optim::ExtraOptions& extra) {
  return optimizer_named(name).make(params, lr, extra);
}

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = {"none", "step", "cosine", "onecycle"};
  return names;
}

Schedule make_schedule(const std::string& name, torch::optim::Optimizer& optimizer, int64_t epochs,
                       int64_t steps) {
  if (name == "step") {
    return {
        std::make_unique<lr_scheduler::StepLR>(optimizer, std::max<int64_t>(epochs / 3, 1), 0.1)};
  }
  if (name == "cosine") {
    // This is equivalent to CosineAnnealingLR. A LambdaLR is used because existing checkpoints
    // contain its state.
    const auto share = [end = static_cast<double>(epochs)](int64_t epoch) {
      return (1 + std::cos(std::numbers::pi * static_cast<double>(epoch) / end)) / 2;
    };
    return {std::make_unique<lr_scheduler::LambdaLR>(optimizer, share)};
  }
  if (name == "onecycle") {
    const auto& optimizer_options = optimizer.param_groups().front().options();
    const lr_scheduler::OneCycleLROptions options = {
        .total_steps = steps, .cycle_momentum = has_momentum(optimizer_options)};
    return {
        std::make_unique<lr_scheduler::OneCycleLR>(optimizer, optimizer_options.get_lr(), options),
        sconce::SchedulerInterval::step};
  }
  TORCH_CHECK(name == "none", "make_schedule: unknown scheduler ", name);
  return {};
}

}  // namespace train
