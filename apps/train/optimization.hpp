#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/training/lr_scheduling.hpp"

namespace train {

/// The names that `make_optimizer` knows.
const std::vector<std::string>& optimizer_names();

/// The learning rate that an optimizer starts with where none is given.
double default_lr(const std::string& optimizer);

/// Returns one of sconce's optimizers over the parameters; SGD's momentum is 0.9. Where `extra` has
/// a learning rate, a tensor, it is the one.
/// @throw c10::Error if there is none of that name.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(
    const std::string& name, const std::vector<torch::Tensor>& params, double lr,
    const sconce::optim::ExtraOptions& extra = {});

/// A scheduler and when to step it; "none" has none.
struct Schedule {
  std::unique_ptr<sconce::optim::lr_scheduler::LRScheduler> scheduler = {};
  sconce::SchedulerInterval interval = sconce::SchedulerInterval::epoch;
};

/// The names that `make_schedule` knows.
const std::vector<std::string>& scheduler_names();

/// Returns the schedule of that name over so many epochs, which have so many steps together.
/// @throw c10::Error if there is none of that name.
Schedule make_schedule(const std::string& name, torch::optim::Optimizer& optimizer, int64_t epochs,
                       int64_t steps);

}  // namespace train
