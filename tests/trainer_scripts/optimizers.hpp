#pragma once

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"
#include "trainer_scripts/net.hpp"
#include "trainer_scripts/world.hpp"

namespace trainer_scripts {

using Groups = std::vector<std::vector<torch::Tensor>>;

/// Returns the parameters that "all", "head", or "body" refers to.
std::vector<torch::Tensor> parameters_of(const NetImpl& net, const std::string& part);

/// Returns the parameter groups that the optimizer starts with.
Groups first_groups(const json& spec, const NetImpl& net);

/// Creates the optimizer that the script describes.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const json& spec, const Groups& groups);

/// Downcasts the optimizer to a sconce optimizer.
sconce::optim::Optimizer& of_sconce(torch::optim::Optimizer& optimizer);

/// Moves a LibTorch optimizer to another address. sconce optimizers cannot be moved.
void move_away(std::unique_ptr<torch::optim::Optimizer>& optimizer);

/// Returns the position in the list of each parameter in a group, or -1 if the parameter is not in
/// the list.
std::vector<int64_t> places_in(const std::vector<torch::Tensor>& list,
                               const std::vector<torch::Tensor>& group);

/// Writes the learning rates, parameters, and state to the trace.
void trace_optimizer(const std::string& name, torch::optim::Optimizer& optimizer,
                     const NetImpl& net, Trace& trace);

}  // namespace trainer_scripts
