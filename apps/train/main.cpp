// sconce-train: trains on images or a table, and classifies pictures or predicts rows by it.
//   build/default/bin/sconce-train --model lenet --epochs 10

#include <ATen/ceil_div.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "cpu_threads.hpp"
#include "earlier_runs.hpp"
#include "fail.hpp"
#include "gpus_of_cuda.hpp"
#include "model_file.hpp"
#include "models.hpp"
#include "new_folders.hpp"
#include "optimization.hpp"
#include "predict.hpp"
#include "reports.hpp"
#include "results.hpp"
#include "run_checkpoint.hpp"
#include "schedule_keeper.hpp"
#include "schedule_span.hpp"
#include "sconce/sconce.hpp"
#include "standard_output.hpp"
#include "table_data.hpp"
#include "training_data.hpp"

namespace {

std::string gpu_names() {
  sconce::Environment facts;
  facts.torch.num_gpus = sconce::num_gpus();
  facts.driver.gpus = apps::gpus_of_cuda();
  return sconce::gpu_names(facts);
}

void print_hardware(std::ostream& out, const std::string& threads, torch::Device device,
                    const sconce::distributed::ProcessGroup& group) {
  out << "hardware: " << threads << ", " << gpu_names() << "; training on " << device;
  if (group.world_size() > 1) {
    out << " in the first of " << group.world_size() << " processes, by " << group.backend();
  }
  out << std::endl;
  if (device.is_cpu() && sconce::num_gpus() > 0) {
    std::cerr << "sconce-train: warning: a GPU is there but unused (--device auto uses it)\n";
  }
}

// The network to train.
struct Network {
  train::Classifier model;
  // The number of classes of the last layer in --weights, if another one took its place.
  std::optional<int64_t> replaced = {};
};

Network make_network(const train::CommandLine& line, const train::Task& task,
                     const train::Pretrained& weights) {
  torch::manual_seed(line.seed);
  Network made{train::make_model(line.model, task.shape, task.outputs())};
  if (!line.weights.empty()) made.replaced = train::load_weights(made.model, weights);
  if (line.freeze) made.model->freeze();
  return made;
}

std::vector<torch::Tensor> trained_parameters(const torch::nn::Module& model) {
  auto parameters = model.parameters();
  std::erase_if(parameters, [](const torch::Tensor& tensor) { return !tensor.requires_grad(); });
  return parameters;
}

int64_t count_numbers(const std::vector<torch::Tensor>& tensors) {
  int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.numel();
  return count;
}

void print_task(std::ostream& out, const train::CommandLine& line, const train::TrainingData& data,
                const Network& network) {
  const train::Task& task = data.task;
  out << "data: " << line.data << ", " << data.train_size << " training and " << data.test_size
      << (task.is_table() ? " test rows of " : " test images of ");
  out << task.shape[task.is_table() ? 0 : 1] << (task.is_table() ? " features" : "x");
  if (!task.is_table()) out << task.shape[2];
  if (!task.is_regression()) out << ", " << task.classes.size() << " classes";
  if (line.skip_bad) {
    out << "; " << data.left_out << (task.is_table() ? " bad rows" : " bad pictures")
        << " left out";
  }
  if (task.is_regression()) {
    out << "\nloss: mean squared error of " << task.target << ", standardized by its mean "
        << task.mean.back() << " and deviation " << task.std.back();
  }
  const auto& model = *network.model;
  out << "\nmodel: " << line.model << ", " << count_numbers(model.parameters()) << " parameters";
  if (line.freeze)
    out << ", of which " << count_numbers(trained_parameters(model)) << " are trained";
  if (!line.weights.empty()) out << "\nweights: " << line.weights.string();
  if (network.replaced) {
    out << "; their last layer, for " << *network.replaced << " classes, is replaced by one for "
        << data.task.classes.size();
  }
  out << std::endl;
}

// Prints the summary of the model for a batch, which has at most the examples that there are.
void print_summary(std::ostream& out, const train::CommandLine& line,
                   const train::TrainingData& data, train::Classifier& model,
                   torch::Device device) {
  std::vector<int64_t> shape = {std::min(line.batch_size, data.train_size)};
  shape.insert(shape.end(), data.task.shape.begin(), data.task.shape.end());
  out << sconce::summary(model->network(), torch::zeros(shape, device)) << std::flush;
}

// Returns the processes that train together. Without --parallel distributed this is one process,
// even if a launcher has set its variables.
sconce::distributed::ProcessGroup join(const train::CommandLine& line) {
  using sconce::distributed::ProcessGroup;
  if (line.parallel != "distributed") return {};
  return ProcessGroup::init(
      {.timeout = std::chrono::milliseconds(std::llround(line.timeout * 1000))});
}

// Calls `fit` with the model, wrapped as --parallel says.
template <class Fit>
sconce::FitResult fit_parallel(const std::string& parallel, train::Classifier& model,
                               const sconce::distributed::ProcessGroup& group, const Fit& fit) {
  if (parallel == "data") {
    sconce::nn::DataParallel replicas(model);
    return fit(replicas);
  }
  if (parallel == "distributed") {
    sconce::nn::DistributedDataParallel of_rank(model, group);
    return fit(of_rank);
  }
  return fit(model);
}

void print_resumption(std::ostream& out, const train::CommandLine& line,
                      const train::ScheduleSpan& span, const train::SavedRun& saved,
                      const sconce::Checkpoint& checkpoint) {
  out << "resuming from " << checkpoint.latest().string() << std::endl;
  if (!saved.schedule_epochs && line.scheduler != "none") {  // 0.2 wrote it
    out << "the checkpoint does not say how many epochs its schedule is for: " << line.epochs
        << " are assumed" << std::endl;
  }
  if (!span.restarts) return;
  out << "restarting the schedule: " << line.scheduler << " over the epochs "
      << line.epochs - span.epochs + 1 << " to " << line.epochs << std::endl;
}

void print_peak_memory(std::ostream& out, torch::Device device) {
  const auto bytes = sconce::cuda::memory_stats(device).max_allocated;
  out << "peak memory on " << device << ": " << bytes / (1 << 20) << " MiB" << std::endl;
}

sconce::TrainerOptions trainer_options(const train::CommandLine& line, const train::Task& task,
                                       torch::Device device,
                                       const sconce::distributed::ProcessGroup& group,
                                       sconce::Metrics metrics) {
  sconce::Loss loss;  // empty for the cross entropy
  if (task.is_regression()) {
    loss = [](const auto& output, const auto& target) { return torch::mse_loss(output, target); };
  }
  return {.max_epochs = line.epochs,
          .gradient_clip_val = line.clip,
          .precision = line.precision,
          .accumulate_grad_batches = line.accumulate,
          .device = device,
          .graph = line.graph,
          .fast_dev_run = line.fast_dev_run,
          .loss = std::move(loss),
          .metrics = std::move(metrics),
          .process_group = group};
}

// Returns the callbacks besides the reports. Those that save come last, after what they save.
std::vector<std::unique_ptr<sconce::TrainerCallback>> make_callbacks(
    const train::CommandLine& line, const train::Task& task, const train::ScheduleSpan& span,
    train::Schedule& schedule, const std::optional<train::SavedRun>& saved,
    std::optional<sconce::optim::ExponentialMovingAverage>& ema,
    std::optional<sconce::Checkpoint>& checkpoint) {
  std::vector<std::unique_ptr<sconce::TrainerCallback>> callbacks;
  if (schedule.scheduler) {
    callbacks.push_back(std::make_unique<train::ScheduleKeeper>(line, span, schedule, saved));
    callbacks.push_back(
        std::make_unique<sconce::LRScheduling>(*schedule.scheduler, schedule.interval));
  }
  if (ema) callbacks.push_back(std::make_unique<sconce::WeightAveraging>(*ema));
  if (checkpoint) {
    sconce::ModelCheckpointOptions options{.save_every = line.save_every};
    if (task.is_regression()) options.monitor = "test_loss";
    callbacks.push_back(std::make_unique<sconce::ModelCheckpoint>(*checkpoint, options));
  }
  return callbacks;
}

// Returns false if SIGTERM stopped the training.
bool train_model(const train::CommandLine& line) {
  const std::string threads = apps::choose_threads();
  train::check_earlier_runs(line);  // before the processes join: each reports the error
  const auto group = join(line);
  const torch::Device device = line.torch_device(group);
  std::ostream out(group.rank() == 0 ? std::cout.rdbuf() : nullptr);
  const bool has_results = !line.out.empty() && group.rank() == 0;
  using Paths = std::vector<std::filesystem::path>;
  const train::NewFolders removed_if_empty(
      group.rank() == 0 ? Paths{line.out, line.checkpoint, line.scalars} : Paths());
  auto weights =
      line.weights.empty() ? train::Pretrained() : train::load_pretrained(line.weights, line.model);
  const train::TrainingData data = train::is_table(line.data)
                                       ? train::open_table(line, group, train::resumed_table(line))
                                       : train::open_images(line, group, weights.task);
  Network network = make_network(line, data.task, std::exchange(weights, {}));
  train::Classifier& model = network.model;
  const int64_t steps = at::ceil_div<int64_t>(data.train.size(), line.accumulate);
  auto checkpoint = train::open_checkpoint(line, data, group);
  const auto saved = train::saved_run(checkpoint);
  const auto span = train::schedule_span(line, saved, steps);
  if (has_results) train::check_results_writable(line);
  print_hardware(out, threads, device, group);
  print_task(out, line, data, network);

  train::Reports reports(line, data.task, out);
  sconce::Trainer trainer(trainer_options(line, data.task, device, group, reports.metrics()));
  trainer.prepare_model(*model);
  if (line.summary && group.rank() == 0) print_summary(out, line, data, model, device);

  const double lr = line.lr.value_or(train::default_lr(line.optimizer));
  sconce::optim::ExtraOptions extra;
  if (line.graph && device.is_cuda()) extra.lr = torch::full({}, lr, device);
  const auto optimizer =
      train::make_optimizer(line.optimizer, trained_parameters(*model), lr, extra);
  if (saved) print_resumption(out, line, span, *saved, *checkpoint);
  auto schedule = train::make_schedule(line.scheduler, *optimizer, span.epochs, span.steps);
  std::optional<sconce::optim::ExponentialMovingAverage> ema;
  if (line.ema > 0) ema.emplace(*model, sconce::optim::EmaOptions{.decay = line.ema});

  sconce::FitData fit_data = {
      .train = data.train, .test = data.test, .callbacks = reports.callbacks()};
  train::RunSaving saving(line, data);
  // First, so that a killed run has flags wherever it has scalars: `check_earlier_runs` asks.
  if (checkpoint) fit_data.callbacks.insert(fit_data.callbacks.begin(), &saving);
  const auto callbacks = make_callbacks(line, data.task, span, schedule, saved, ema, checkpoint);
  for (const auto& callback : callbacks) fit_data.callbacks.push_back(callback.get());
  const auto result = fit_parallel(line.parallel, model, group, [&](auto& parallel) {
    return trainer.fit(parallel, *optimizer, fit_data);
  });
  if (result.stopped) return false;
  if (has_results) {
    train::write_results(line, {line.model, data.task, model}, ema ? &*ema : nullptr, result);
  }
  if (line.memory) print_peak_memory(out, device);
  return true;
}

// Turns off the log of LibTorch's profiler on standard error, unless the user has set its level.
void quiet_profiler() {
  ::setenv("KINETO_LOG_LEVEL", "7", /*overwrite=*/0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sconce::tune_memory();
    const train::CommandLine line = train::parse_command_line(argc, argv);
    if (!line.help.empty()) {
      std::cout << line.help;
    } else if (line.predict) {
      apps::choose_threads();
      train::predict(*line.predict, std::cout);
    } else if (quiet_profiler(); !train_model(line)) {
      std::cerr << "sconce-train: stopped by SIGTERM; --resume goes on from "
                << line.checkpoint.string() << '\n';
      return 128 + SIGTERM;  // as a shell reports the signal: the run is not finished
    }
    apps::check_standard_output();
  } catch (const train::UsageError& error) {
    return apps::fail("sconce-train", error.what(), 2);
  } catch (const std::exception& error) {
    return apps::fail("sconce-train", train::with_flags(error.what()));
  }
  return 0;
}
