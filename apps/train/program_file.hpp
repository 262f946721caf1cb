#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>

#include "model_file.hpp"
#include "task.hpp"

namespace train {

/// Records a trained network as a program. The program contains the metadata of the network's
/// weights file, from which `load_predictor` reads the task. The program computes in float32 and in
/// evaluation mode. It runs on the CPU unless the reader selects another device. The network is not
/// modified.
/// @throw c10::Error with the file or the operator, and the cause.
void export_program(const std::filesystem::path& file, const TrainedModel& model);

/// A trained network, loaded from weights or from a program.
struct Predictor {
  Task task = {};
  /// Returns the outputs (N, outputs), on the CPU, for the task's inputs (N, ...).
  std::function<at::Tensor(const at::Tensor& inputs)> forward = {};
};

/// Reads a program written by `export_program`, or weights as `load_model` does.
/// @throw c10::Error with the file's path if the file cannot be read, was not written by
/// sconce-train, or is corrupted, or if a program does not match the task's inputs and outputs.
Predictor load_predictor(const std::filesystem::path& file);

}  // namespace train
