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

/// Returns the parameters that require a gradient.
std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& model);

// Everything that a run prints except the reports of its epochs, in this order.

/// `threads` describes the CPU threads. Warns on standard error if there is an unused GPU.
void print_hardware(std::ostream& out, const std::string& threads, torch::Device device,
                    const sconce::distributed::ProcessGroup& group);

void print_task(std::ostream& out, const CommandLine& line, const TrainingData& data,
                const Network& network);

/// Prints the summary of the model for one batch, which is no larger than the dataset.
void print_summary(std::ostream& out, const CommandLine& line, const TrainingData& data,
                   Classifier& model, torch::Device device);

void print_resumption(std::ostream& out, const CommandLine& line, const ScheduleSpan& span,
                      const SavedRun& saved, const sconce::Checkpoint& checkpoint);

void print_peak_memory(std::ostream& out, torch::Device device);

}  // namespace train
