#include "optimization.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sconce/optim/adam.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"

namespace train {

namespace lr_scheduler = sconce::optim::lr_scheduler;

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = {"sgd", "adam", "adamw"};
  return names;
}

double default_lr(const std::string& optimizer) {
  return optimizer == "sgd" ? 0.05 : 0.001;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<torch::Tensor>& params,
                                                        double lr,
                                                        const sconce::optim::ExtraOptions& extra) {
  using namespace torch::optim;
  if (name == "adam") return std::make_unique<sconce::optim::Adam>(params, AdamOptions(lr), extra);
  if (name == "adamw")
    return std::make_unique<sconce::optim::AdamW>(params, AdamWOptions(lr), extra);
  TORCH_CHECK(name == "sgd", "make_optimizer: unknown optimizer ", name);
  return std::make_unique<sconce::optim::SGD>(params, SGDOptions(lr).momentum(0.9), extra);
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
    const double lr = optimizer.param_groups().front().options().get_lr();
    return {std::make_unique<lr_scheduler::OneCycleLR>(
                optimizer, lr, lr_scheduler::OneCycleLROptions{.total_steps = steps}),
            sconce::SchedulerInterval::step};
  }
  TORCH_CHECK(name == "none", "make_schedule: unknown scheduler ", name);
  return {};
}

}  // namespace train
