#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>

#include "model_file.hpp"
#include "task.hpp"

namespace train {

/// Records a trained network as a program with the metadata of its weights file, from which
/// `load_predictor` reads the task. It computes in float32 and in evaluation mode, on the CPU
/// unless the reader chooses another device. The network stays as it is.
/// @throw c10::Error naming the file or the operator, and the cause.
void export_program(const std::filesystem::path& file, const TrainedModel& model);

/// A trained network, however it was stored.
struct Predictor {
  Task task = {};
  /// Returns the outputs (N, outputs) of inputs (N, ...) of the task, on the CPU.
  std::function<at::Tensor(const at::Tensor& inputs)> forward = {};
};

/// Reads a program of `export_program`, or otherwise weights as `load_model` does.
/// @throw c10::Error naming the file if it cannot be read, was not written by a training, or is
/// damaged; or if a program does not have the task's inputs and outputs.
Predictor load_predictor(const std::filesystem::path& file);

}  // namespace train
