#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/training/lr_scheduling.hpp"

namespace train {

/// Returns the valid optimizer names for `make_optimizer`.
const std::vector<std::string>& optimizer_names();

/// Returns the default learning rate of an optimizer.
double default_lr(const std::string& optimizer);

/// Creates one of sconce's optimizers for the given parameters. SGD uses a momentum of 0.9. A
/// learning rate in `extra` takes precedence over `lr`.
/// @throw c10::Error if the name is unknown.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const std::string& name, const std::vector<torch::Tensor>& params, double lr,
    const sconce::optim::ExtraOptions& extra = {});

/// A scheduler, which is null for "none", and the setting for when it steps.
struct Schedule {
  std::unique_ptr<sconce::optim::lr_scheduler::LRScheduler> scheduler = {};
  sconce::SchedulerInterval interval = sconce::SchedulerInterval::epoch;
};

/// Returns the valid schedule names for `make_schedule`.
const std::vector<std::string>& scheduler_names();

/// Creates the schedule with this name for `epochs` epochs and a total of `steps` steps.
/// @throw c10::Error if the name is unknown.
Schedule make_schedule(const std::string& name, torch::optim::Optimizer& optimizer, int64_t epochs,
                       int64_t steps);

}  // namespace train
