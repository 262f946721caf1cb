#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>

#include "model_file.hpp"
#include "task.hpp"

namespace train {

/// Records a trained network as a program that contains the metadata of its weights file, from
/// which `load_predictor` reads the task. The program computes in float32 and evaluation mode, on
/// the CPU unless the reader chooses another device. The network is not modified.
/// @throw c10::Error naming the file or the operator, and the cause.
void export_program(const std::filesystem::path& file, const TrainedModel& model);

/// A trained network, loaded from weights or from a program.
struct Predictor {
  Task task = {};
  /// Returns the outputs (N, outputs) for inputs (N, ...) of the task, on the CPU.
  std::function<at::Tensor(const at::Tensor& inputs)> forward = {};
};

/// Reads a program from `export_program`, or weights as `load_model` does.
/// @throw c10::Error naming the file if it cannot be read, was not written by sconce-train, or is
/// damaged, or if a program does not match the task's inputs and outputs.
Predictor load_predictor(const std::filesystem::path& file);

}  // namespace train
