#include "training_run.hpp"

#include <ATen/ceil_div.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <utility>

#include "cpu_threads.hpp"
#include "earlier_runs.hpp"
#include "results.hpp"
#include "schedule_keeper.hpp"
#include "sconce/sconce.hpp"
#include "table_data.hpp"

namespace train {

namespace {

// Returns the group of processes that train together. Without --parallel distributed, the group
// consists of a single process, even if a launcher has set its environment variables.
sconce::distributed::ProcessGroup join(const CommandLine& line) {
  using sconce::distributed::ProcessGroup;
  if (line.parallel != "distributed") return {};
  return ProcessGroup::init(
      {.timeout = std::chrono::milliseconds(std::llround(line.timeout * 1000))});
}

// Calls `fit` with the model, wrapped as required by --parallel.
template <class Fit>
sconce::FitResult fit_parallel(const std::string& parallel, Classifier& model,
                               const sconce::distributed::ProcessGroup& group, const Fit& fit) {
  if (parallel == "data") {
    sconce::nn::DataParallel replicas(model);
    return fit(replicas);
  }
  if (parallel == "distributed") {
    sconce::nn::DistributedDataParallel ddp_model(model, group);
    return fit(ddp_model);
  }
  return fit(model);
}

sconce::TrainerOptions trainer_options(const CommandLine& line, const Task& task,
                                       torch::Device device,
                                       const sconce::distributed::ProcessGroup& group,
                                       sconce::Metrics metrics) {
  sconce::Loss loss;  // empty means cross-entropy
  if (task.is_regression()) loss = torch::mse_loss;
  return {.max_epochs = line.epochs,
          .gradient_clip_val = line.clip,
          .precision = line.amp_precision(),
          .accumulate_grad_batches = line.accumulate,
          .device = device,
          .graph = line.graph,
          .compiler = line.compile ? sconce::program::inductor() : nullptr,
          .fast_dev_run = line.fast_dev_run,
          .loss = std::move(loss),
          .metrics = std::move(metrics),
          .process_group = group};
}

}  // namespace

int TrainingRun::run() {
  choose_threads();
  check_earlier_runs(line_);  // before the processes join, so that each of them reports the error
  join_processes();
  note_new_folders();
  load_weights();
  open_data();
  make_network();
  open_saved_run();
  check_results();
  print_header();
  make_trainer();
  make_optimizer();
  print_resumption();
  make_schedule();
  make_average();
  make_callbacks();
  fit();
  if (result_.stopped) return stopping_.signal() != 0 ? stopping_.signal() : SIGTERM;
  write_results();
  return 0;
}

void TrainingRun::choose_threads() {
  threads_ = apps::describe(sconce::tune_threads());
}

void TrainingRun::join_processes() {
  group_ = join(line_);
  device_ = line_.torch_device(group_);
  if (is_first()) out_.rdbuf(std::cout.rdbuf());
}

void TrainingRun::note_new_folders() {
  using Paths = std::vector<std::filesystem::path>;
  removed_if_empty_.emplace(is_first() ? Paths{line_.out, line_.checkpoint, line_.scalars,
                                               line_.export_file.parent_path()}
                                       : Paths());
}

void TrainingRun::load_weights() {
  if (!line_.weights.empty()) weights_ = load_pretrained(line_.weights, line_.model);
}

void TrainingRun::open_data() {
  data_ = is_table(line_.data) ? open_table(line_, group_, resumed_table(line_))
                               : open_images(line_, group_, weights_.task);
}

void TrainingRun::make_network() {
  torch::manual_seed(line_.seed);
  network_.model = make_model(line_.model, data_->task.shape, data_->task.outputs());
  if (!line_.weights.empty()) network_.replaced = train::load_weights(network_.model, weights_);
  weights_ = {};  // frees their memory
  if (line_.freeze) network_.model->freeze();
}

void TrainingRun::open_saved_run() {
  if (auto opened = open_checkpoint(line_, *data_, group_)) checkpoint_.emplace(std::move(*opened));
  saved_ = saved_run(checkpoint_);
  span_ =
      schedule_span(line_, saved_, at::ceil_div<int64_t>(data_->train.size(), line_.accumulate));
}

void TrainingRun::check_results() {
  if (is_first()) check_results_writable(line_);
}

void TrainingRun::print_header() {
  print_hardware(out_, threads_, device_, group_);
  print_task(out_, line_, *data_, network_);
}

void TrainingRun::make_trainer() {
  reports_.emplace(line_, data_->task, out_);
  trainer_.emplace(trainer_options(line_, data_->task, device_, group_, reports_->metrics()));
  trainer_->prepare_model(*network_.model);
  if (line_.summary && is_first()) print_summary(out_, line_, *data_, network_.model, device_);
}

void TrainingRun::make_optimizer() {
  const double lr = line_.learning_rate();
  sconce::optim::ExtraOptions extra;
  if (line_.graph && device_.is_cuda()) extra.lr = torch::full({}, lr, device_);
  optimizer_ =
      train::make_optimizer(line_.optimizer, trained_parameters(*network_.model), lr, extra);
}

void TrainingRun::print_resumption() {
  if (saved_) train::print_resumption(out_, line_, span_, *saved_, *checkpoint_);
}

void TrainingRun::make_schedule() {
  schedule_ = train::make_schedule(line_.scheduler, *optimizer_, span_.epochs, span_.steps);
}

void TrainingRun::make_average() {
  if (line_.ema > 0) {
    ema_.emplace(*network_.model,
                 sconce::optim::ExponentialMovingAverageOptions{.decay = line_.ema});
  }
}

template <class Callback, class... Args>
void TrainingRun::add(Args&&... args) {
  owned_.push_back(std::make_unique<Callback>(std::forward<Args>(args)...));
  callbacks_.push_back(owned_.back().get());
}

void TrainingRun::make_callbacks() {
  // This callback comes first, so that any run that has written scalars has also saved its flags,
  // even if the run is killed. `check_earlier_runs` relies on this order.
  if (checkpoint_) add<RunSaving>(line_, *data_);
  for (const auto& report : reports_->callbacks()) callbacks_.push_back(report);
  if (schedule_.scheduler) {
    add<ScheduleKeeper>(line_, span_, schedule_, saved_);
    add<sconce::LRScheduling>(*schedule_.scheduler, schedule_.interval);
  }
  if (ema_) add<sconce::WeightAveraging>(*ema_);
  if (!checkpoint_) return;
  callbacks_.push_back(&stopping_);
  sconce::ModelCheckpointOptions options{.every_n_train_steps = line_.every_n_train_steps};
  if (data_->task.is_regression()) options.monitor = "test_loss";
  add<sconce::ModelCheckpoint>(*checkpoint_, options);  // last, after everything that it saves
}

void TrainingRun::fit() {
  const sconce::FitData data = {
      .train = data_->train, .test = data_->test, .callbacks = callbacks_};
  result_ = fit_parallel(line_.parallel, network_.model, group_, [&](auto& parallel) {
    return trainer_->fit(parallel, *optimizer_, data);
  });
}

void TrainingRun::write_results() {
  if (is_first()) {
    train::write_results(line_, {line_.model, data_->task, network_.model}, ema_ ? &*ema_ : nullptr,
                         result_);
  }
  if (line_.memory) print_peak_memory(out_, device_);
}

}  // namespace train
