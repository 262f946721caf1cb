#include "program_file.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "sconce/nn/state_dict.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "sconce/repr.hpp"

namespace train {

namespace {

using sconce::program::Program;
using sconce::program::TensorSpec;

std::string input_name(const Task& task) {
  return task.is_table() ? "rows" : "images";
}

std::string output_name(const Task& task) {
  return task.is_regression() ? "target" : "logits";
}

std::vector<int64_t> input_shape(const Task& task, int64_t rows) {
  std::vector<int64_t> shape = {rows};
  shape.insert(shape.end(), task.shape.begin(), task.shape.end());
  return shape;
}

// Returns random values distributed like standardized inputs. Real examples from the data are not
// used, because they may be private.
at::Tensor example_inputs(const Task& task) {
  return torch::randn(input_shape(task, /*rows=*/2),
                      at::make_generator<at::CPUGeneratorImpl>(/*seed=*/0));
}

void check_tensors(const std::string& file, const char* what,
                   const std::vector<TensorSpec>& tensors, const std::vector<int64_t>& shape) {
  TORCH_CHECK(tensors.size() == 1, file, ": expected a program with one tensor as its ", what,
              ", found ", tensors.size());
  TORCH_CHECK(tensors[0].dtype == torch::kFloat && tensors[0].shape == shape, file,
              ": expected a program with torch.float32 of shape ", at::IntArrayRef(shape),
              " as its ", what, " (according to its metadata), found ",
              sconce::repr(tensors[0].dtype), " of shape ", at::IntArrayRef(tensors[0].shape));
}

Predictor predictor_of(const std::filesystem::path& file, const Program& program) {
  Predictor predictor{.task = task_of(program.metadata(), file)};
  check_tensors(file.string(), "input", program.inputs(), input_shape(predictor.task, -1));
  check_tensors(file.string(), "output", program.outputs(), {-1, predictor.task.outputs()});
  predictor.forward = [program](const at::Tensor& inputs) { return program.run({inputs})[0]; };
  return predictor;
}

}  // namespace

void export_program(const std::filesystem::path& file, const TrainedModel& model) {
  // The copy is on the CPU and in evaluation mode, like the network that `load_model` creates from
  // the weights.
  Classifier network = make_model(model.name, model.task.shape, model.task.outputs());
  sconce::nn::load_state_dict(*network, sconce::nn::state_dict(*model.network));
  network->eval();
  auto metadata = model_metadata(model.name, model.task);
  metadata.erase("format");  // every program contains its own
  const std::string input = input_name(model.task);
  sconce::program::record(file, network, {{input, example_inputs(model.task)}},
                          {.dynamic_shapes = {{.input = input}},
                           .output_names = {output_name(model.task)},
                           .save_example = true,
                           .metadata = std::move(metadata)});
}

Predictor load_predictor(const std::filesystem::path& file) {
  if (is_program(file)) return predictor_of(file, Program::load(file, {.device = torch::kCPU}));
  const TrainedModel model = load_model(file);
  return {model.task,
          [network = model.network](const at::Tensor& x) mutable { return network->forward(x); }};
}

}  // namespace train
