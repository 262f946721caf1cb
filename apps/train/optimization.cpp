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

Schedule make_schedule(const std::string& name, torch::optim::Optimizer& optimizer, int epochs,
                       int64_t steps_per_epoch) {
  if (name == "step") {
    return {std::make_unique<lr_scheduler::StepLR>(optimizer, std::max(epochs / 3, 1), 0.1)};
  }
  if (name == "cosine") {
    // CosineAnnealingLR, as a function of the epoch: its T_max would come back with a checkpoint,
    // and the rate would rise again where a run is resumed for more epochs than it had.
    const auto share = [epochs](int64_t epoch) {
      return (1 + std::cos(std::numbers::pi * static_cast<double>(epoch) / epochs)) / 2;
    };
    return {std::make_unique<lr_scheduler::LambdaLR>(optimizer, share)};
  }
  if (name == "onecycle") {
    const double lr = optimizer.param_groups().front().options().get_lr();
    return {
        std::make_unique<lr_scheduler::OneCycleLR>(
            optimizer, lr,
            lr_scheduler::OneCycleLROptions{.epochs = epochs, .steps_per_epoch = steps_per_epoch}),
        sconce::SchedulerInterval::step};
  }
  TORCH_CHECK(name == "none", "make_schedule: unknown scheduler ", name);
  return {};
}

}  // namespace train
