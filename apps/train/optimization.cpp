#include "optimization.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"

namespace train {

namespace lr_scheduler = sconce::optim::lr_scheduler;

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = {"sgd",     "adam",    "adamw",
                                                 "adagrad", "rmsprop", "nadam"};
  return names;
}

double default_lr(const std::string& optimizer) {
  if (optimizer == "sgd") return 0.05;
  if (optimizer == "adagrad" || optimizer == "rmsprop") return 0.01;
  return optimizer == "nadam" ? 0.002 : 0.001;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<torch::Tensor>& params,
                                                        double lr,
                                                        const sconce::optim::ExtraOptions& extra) {
  using namespace torch::optim;
  namespace optim = sconce::optim;
  if (name == "adam") return std::make_unique<optim::Adam>(params, AdamOptions(lr), extra);
  if (name == "adamw") return std::make_unique<optim::AdamW>(params, AdamWOptions(lr), extra);
  if (name == "adagrad") return std::make_unique<optim::Adagrad>(params, AdagradOptions(lr), extra);
  if (name == "rmsprop") return std::make_unique<optim::RMSprop>(params, RMSpropOptions(lr), extra);
  if (name == "nadam") {
    return std::make_unique<optim::NAdam>(params, optim::NAdamOptions(lr), extra);
  }
  TORCH_CHECK(name == "sgd", "make_optimizer: unknown optimizer ", name);
  return std::make_unique<optim::SGD>(params, SGDOptions(lr).momentum(0.9), extra);
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
    // This equals CosineAnnealingLR. Earlier checkpoints hold the state of a LambdaLR.
    const auto share = [end = static_cast<double>(epochs)](int64_t epoch) {
      return (1 + std::cos(std::numbers::pi * static_cast<double>(epoch) / end)) / 2;
    };
    return {std::make_unique<lr_scheduler::LambdaLR>(optimizer, share)};
  }
  if (name == "onecycle") {
    const auto& of_optimizer = optimizer.param_groups().front().options();
    const bool has_momentum =
        dynamic_cast<const torch::optim::AdagradOptions*>(&of_optimizer) == nullptr;
    const lr_scheduler::OneCycleLROptions options = {.total_steps = steps,
                                                     .cycle_momentum = has_momentum};
    return {std::make_unique<lr_scheduler::OneCycleLR>(optimizer, of_optimizer.get_lr(), options),
            sconce::SchedulerInterval::step};
  }
  TORCH_CHECK(name == "none", "make_schedule: unknown scheduler ", name);
  return {};
}

}  // namespace train
