#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "models.hpp"
#include "saved_run.hpp"
#include "schedule_span.hpp"
#include "sconce/training/checkpoint.hpp"
#include "training_data.hpp"

namespace train {

/// The network to train.
struct Network {
  Classifier model{nullptr};
  /// The number of classes in the last layer of --weights, if that layer was replaced.
  std::optional<int64_t> replaced = {};
};

/// Returns the parameters that require gradients.
std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& model);

// These functions print the output of a run, except for the per-epoch lines. The functions are
// declared in the order in which a run calls them.

/// `threads` describes the CPU threads. If there is an unused GPU, prints a warning to standard
/// error.
void print_hardware(std::ostream& out, const std::string& threads, torch::Device device,
                    const sconce::distributed::ProcessGroup& group);

void print_task(std::ostream& out, const CommandLine& line, const TrainingData& data,
                const Network& network);

/// Prints a summary of the model for one batch, which is never larger than the dataset.
void print_summary(std::ostream& out, const CommandLine& line, const TrainingData& data,
                   Classifier& model, torch::Device device);

void print_resumption(std::ostream& out, const CommandLine& line, const ScheduleSpan& span,
                      const SavedRun& saved, const sconce::Checkpoint& checkpoint);

void print_peak_memory(std::ostream& out, torch::Device device);

}  // namespace train
