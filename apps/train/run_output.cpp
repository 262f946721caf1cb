#include "run_output.hpp"

#include <torch/types.h>

#include <algorithm>
#include <iostream>

#include "gpus_of_cuda.hpp"
#include "sconce/sconce.hpp"

namespace train {

namespace {

std::string gpu_names() {
  sconce::Environment facts;
  facts.torch.num_gpus = sconce::num_gpus();
  facts.driver.gpus = apps::gpus_of_cuda();
  return sconce::gpu_names(facts);
}

int64_t count_numbers(const std::vector<torch::Tensor>& tensors) {
  int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.numel();
  return count;
}

}  // namespace

std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& model) {
  auto parameters = model.parameters();
  std::erase_if(parameters, [](const torch::Tensor& tensor) { return !tensor.requires_grad(); });
  return parameters;
}

void print_hardware(std::ostream& out, const std::string& threads, torch::Device device,
                    const sconce::distributed::ProcessGroup& group) {
  out << "hardware: " << threads << ", " << gpu_names() << "; training on " << device;
  if (group.world_size() > 1) {
    out << " in the first of " << group.world_size() << " processes, with " << group.backend();
  }
  out << std::endl;
  if (device.is_cpu() && sconce::num_gpus() > 0) {
    std::cerr << "sconce-train: warning: a GPU is available but unused (--device auto uses it)\n";
  }
}

void print_task(std::ostream& out, const CommandLine& line, const TrainingData& data,
                const Network& network) {
  const Task& task = data.task;
  out << "data: " << line.data << ", " << data.train_size << " training and " << data.test_size
      << (task.is_table() ? " test rows of " : " test images of ");
  out << task.shape[task.is_table() ? 0 : 1] << (task.is_table() ? " features" : "x");
  if (!task.is_table()) out << task.shape[2];
  if (!task.is_regression()) out << ", " << task.classes.size() << " classes";
  if (line.skip_bad) {
    out << "; " << data.left_out << (task.is_table() ? " bad rows" : " bad images") << " left out";
  }
  if (task.is_regression()) {
    out << "\nloss: mean squared error of " << task.target << ", standardized with mean "
        << task.mean.back() << " and deviation " << task.std.back();
  }
  const auto& model = *network.model;
  out << "\nmodel: " << line.model << ", " << count_numbers(model.parameters()) << " parameters";
  if (line.freeze)
    out << ", of which " << count_numbers(trained_parameters(model)) << " are trained";
  if (!line.weights.empty()) out << "\nweights: " << line.weights.string();
  if (network.replaced) {
    out << "; replaced the last layer (" << *network.replaced << " classes) with a layer for "
        << data.task.classes.size() << " classes";
  }
  out << std::endl;
}

void print_summary(std::ostream& out, const CommandLine& line, const TrainingData& data,
                   Classifier& model, torch::Device device) {
  std::vector<int64_t> shape = {std::min(line.batch_size, data.train_size)};
  shape.insert(shape.end(), data.task.shape.begin(), data.task.shape.end());
  out << sconce::summary(model->network(), torch::zeros(shape, device)) << std::flush;
}

void print_resumption(std::ostream& out, const CommandLine& line, const ScheduleSpan& span,
                      const SavedRun& saved, const sconce::Checkpoint& checkpoint) {
  out << "resuming from " << checkpoint.latest().string() << std::endl;
  if (!saved.schedule_epochs && line.scheduler != "none") {  // written by 0.2
    out << "the checkpoint does not record how many epochs its schedule covers; assuming "
        << line.epochs << " epochs" << std::endl;
  }
  if (!span.restarts) return;
  out << "restarting the schedule: " << line.scheduler << " over epochs "
      << line.epochs - span.epochs + 1 << " to " << line.epochs << std::endl;
}

void print_peak_memory(std::ostream& out, torch::Device device) {
  const auto bytes = sconce::cuda::memory_stats(device).max_allocated;
  out << "peak memory on " << device << ": " << bytes / (1 << 20) << " MiB" << std::endl;
}

}  // namespace train
