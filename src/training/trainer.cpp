#include "sconce/training/trainer.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "detail/resolve_device.hpp"
#include "detail/state_visitor.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/stopwatch.hpp"
#include "training/fit_progress.hpp"
#include "training/mode_guard.hpp"
#include "training/run_scope.hpp"

namespace sconce {

namespace {

torch::Device choose_device(const TrainerOptions& options) {
  TORCH_CHECK(options.num_gpus == 0 || options.num_gpus == 1,
              "sconce::Trainer: expected num_gpus 0 or 1 (it trains on one device), got ",
              options.num_gpus);
  if (options.device) {
    TORCH_CHECK(options.num_gpus == 0,
                "sconce::Trainer: expected num_gpus or device, got num_gpus ", options.num_gpus,
                " and device ", *options.device);
    return resolve_device(*options.device, "sconce::Trainer");
  }
  if (options.num_gpus > num_gpus()) {
    TORCH_WARN("sconce::Trainer: 1 GPU wanted, none found: using the CPU");
  }
  return options.num_gpus > 0 ? try_gpu() : cpu();
}

torch::Tensor cross_entropy(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::nn::functional::cross_entropy(output, target);
}

Metrics choose_metrics(const TrainerOptions& options) {
  if (options.metrics) return *options.metrics;
  if (options.loss) return {};
  return {{"acc", std::make_shared<metrics::Accuracy>()}};
}

// Calls the opening function of each callback in the given order. At the end of the scope it calls
// the closing function in reverse order, for the callbacks that were opened. Exceptions of closing
// functions are ignored if the scope ends by another exception.
class CallbackScope {
 public:
  using Verb = void (TrainerCallback::*)(Fit&);

  CallbackScope(const std::vector<TrainerCallback*>& callbacks, Fit& fit, Verb opening,
                Verb closing)
      : fit_(fit), closing_(closing) {
    for (auto* callback : callbacks) {
      try {
        (callback->*opening)(fit);
      } catch (...) {
        close_quietly();
        throw;
      }
      opened_.push_back(callback);
    }
  }
  ~CallbackScope() { close_quietly(); }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  void close() {
    while (!opened_.empty()) {
      auto* callback = opened_.back();
      opened_.pop_back();
      (callback->*closing_)(fit_);
    }
  }

 private:
  void close_quietly() {
    while (!opened_.empty()) {
      try {
        close();
      } catch (...) {  // the first error is the one that users see
      }
    }
  }

  Fit& fit_;
  Verb closing_;
  std::vector<TrainerCallback*> opened_ = {};
};

// Returns whether a metric's value is one number. A metric that has no value before its first batch
// counts as such.
bool is_one_number(const metrics::Metric& metric) {
  try {
    return metric.compute().numel() == 1;
  } catch (const std::exception&) {
    return true;
  }
}

// Returns the names of an epoch's values: what `fit` inserts into an EpochMetrics.
std::vector<std::string> value_names(const Metrics& metrics, bool has_test) {
  std::vector<std::string> of_training = {"loss"};
  std::vector<std::string> of_test = {"test_loss"};
  for (const auto& [name, metric] : metrics) {
    if (!is_one_number(*metric)) continue;
    of_training.push_back("train_" + name);
    of_test.push_back("test_" + name);
  }
  if (has_test) of_training.insert(of_training.end(), of_test.begin(), of_test.end());
  return of_training;
}

void check_callbacks(const std::vector<TrainerCallback*>& callbacks) {
  for (size_t i = 0; i < callbacks.size(); ++i) {
    TORCH_CHECK(callbacks[i] != nullptr,
                "sconce::Trainer::fit: expected callbacks, got null as number ", i + 1, " of ",
                callbacks.size());
  }
}

void call_all(const std::vector<TrainerCallback*>& callbacks, Fit& fit, CallbackScope::Verb verb) {
  for (auto* callback : callbacks) (callback->*verb)(fit);
}

Batch next_batch(const BatchLoader::Next& next, torch::Device device) {
  RECORD_USER_SCOPE("data");
  Batch batch = next();
  batch.to(device);
  return batch;
}

void check_batches(int64_t batches, const char* who, const char* expected) {
  TORCH_CHECK(batches > 0, who, ": expected ", expected, ", got no batch");
}

// A rank with more batches than another would wait forever.
void check_ranks(const distributed::ProcessGroup& group, int64_t batches, torch::Device device,
                 const char* who) {
  const auto own = at::full({1}, batches, at::TensorOptions(at::kLong).device(device));
  const auto of_ranks = at::cat(group.all_gather(own)).cpu();
  const auto* each = of_ranks.const_data_ptr<int64_t>();
  for (int rank = 0; rank < group.world_size(); ++rank) {
    TORCH_CHECK(each[rank] == each[0], who,
                ": expected as many training batches on every rank, got ", each[0],
                " on rank 0 and ", each[rank], " on rank ", rank);
  }
}

// Returns the parameters of all groups. `Optimizer::parameters` returns only those of the first.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

// A step of such an optimizer would change nothing: it may be another model's.
[[noreturn]] void refuse_optimizer(const detail::ModelSteps& model,
                                   const torch::optim::Optimizer& optimizer) {
  std::set<const void*> of_model;
  for (const auto& parameter : model.saved.parameters()) {
    of_model.insert(parameter.unsafeGetTensorImpl());
  }
  const auto all = parameters_of(optimizer);
  const auto common = std::count_if(all.begin(), all.end(), [&](const auto& parameter) {
    return of_model.contains(parameter.unsafeGetTensorImpl());
  });
  TORCH_CHECK(false, "sconce::Trainer: expected an optimizer of the parameters of ",
              c10::demangle(typeid(model.saved).name()), ", got one of ", all.size(),
              " parameters, of which ", common,
              " are the model's and none has a gradient after the backward pass");
}

// Reads nothing from the device, and ends at the first gradient.
void check_gradients(const detail::ModelSteps& model, const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) return;
    }
  }
  refuse_optimizer(model, optimizer);
}

// Without a checkpoint the optimizer may be one that has no state.
Stateful state_of(torch::optim::Optimizer& optimizer) {
  return {[&] { return Stateful(optimizer).state_dict(); },
          [&](const c10::IValue& state) { Stateful(optimizer).load_state_dict(state); },
          c10::demangle(typeid(optimizer).name())};
}

NamedStates states_of(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                      amp::GradScaler& scaler, const std::vector<TrainerCallback*>& callbacks) {
  NamedStates states = {
      {"model", model.saved}, {"optimizer", state_of(optimizer)}, {"scaler", scaler}};
  std::set<std::string> names;
  for (auto* callback : callbacks) {
    auto state = callback->state();
    if (!state) continue;
    TORCH_CHECK(names.insert(callback->name()).second, "sconce::Trainer::fit: expected callbacks ",
                "with a state to have different names, got two called '", callback->name(), "'");
    states.emplace_back(callback->name(), std::move(*state));
  }
  return states;
}

}  // namespace

// Sums of the loss and the metrics over the finished batches of an epoch. They stay on the device
// until its end.
class Trainer::Epoch {
 public:
  Epoch(torch::Device device, const Metrics& metrics)
      : loss_(at::zeros({1}, at::TensorOptions(at::kDouble).device(device))),
        metrics_(metrics),
        stopwatch_(device) {}

  // Sets the sums to 0, unless the epoch continues from `batch`.
  void begin(int64_t batch = 0) {
    stopwatch_.restart();
    if (batch > 0) return;
    loss_.zero_();
    examples_ = 0;
    seconds_before_ = 0;
    for (const auto& [name, metric] : metrics_) metric->reset();
  }

  double seconds() const { return seconds_before_ + stopwatch_.seconds(); }
  int64_t examples() const { return examples_; }

  void add(const StepOutput& step, int64_t examples) {
    loss_.add_(step.loss, /*alpha=*/examples);
    examples_ += examples;
    TORCH_CHECK(
        step.output.defined() || metrics_.empty(),
        "sconce::Trainer: expected a training_step that returns a StepOutput with what the ",
        "metrics are to get, or no metrics");
    if (metrics_.empty()) return;
    const auto output = step.output.detach();
    for (const auto& [name, metric] : metrics_) metric->update(output, step.target);
  }

  // Returns the position of the fit, with the sums of the current epoch in rank order.
  c10::IValue progress(const Fit& fit) const {
    const auto ranks = fit.process_group.all_gather(fit.batch > 0 ? sums() : loss_.new_empty({0}));
    return as_state(FitProgress{.batches = fit.batches,
                                .accumulate = fit.accumulate,
                                .epochs = fit.epochs,
                                .sums = at::stack(ranks),
                                .seconds = fit.batch > 0 ? seconds() : 0});
  }

  void load_progress(Fit& fit, const c10::IValue& state) {
    constexpr auto who = "sconce::Trainer::fit: expected ";
    auto saved = from_state<FitProgress>(state, "sconce::Trainer::fit: a checkpoint's 'extra'");
    TORCH_CHECK(saved.batches == fit.batches, who, saved.batches,
                " training batches, as the checkpoint was saved with, got ", fit.batches);
    const bool is_known = saved.accumulate != 0;
    TORCH_CHECK(!is_known || saved.accumulate == fit.accumulate, who, "accumulate_grad_batches ",
                saved.accumulate, ", as the checkpoint was saved with, got ", fit.accumulate);
    fit.epochs = std::move(saved.epochs);
    if (fit.batch == 0) return;
    const int64_t size = sums().numel();
    TORCH_CHECK(
        saved.sums.dim() == 2 && saved.sums.size(0) > fit.process_group.rank() &&
            saved.sums.size(1) == size,
        who,
        "the metrics that the checkpoint was saved with within an epoch, of sums of the sizes ",
        saved.sums.sizes(), ", got others, of ", size,
        " sums; one that an earlier sconce saved within an epoch cannot be resumed");
    const auto row = saved.sums[fit.process_group.rank()];
    const auto own = row.to(at::kCPU, at::kDouble).contiguous();
    loss_.copy_(own.narrow(0, 0, 1));
    set_examples_and_metrics(own);
    seconds_before_ = saved.seconds;
  }

  struct Values {
    double loss;
    MetricValues metrics;
  };

  // Returns the loss and the metrics that are one number, over all ranks. This is the only read
  // from the device. Afterwards the metrics hold the sums of all ranks.
  Values values(const distributed::ProcessGroup& group, const std::string& prefix) {
    torch::Tensor all = sums();
    group.all_reduce(all);
    all = all.cpu();
    set_examples_and_metrics(all);
    const double loss = all.const_data_ptr<double>()[0] / static_cast<double>(examples_);
    // A nan may have a sign, which would be printed.
    Values values = {std::isnan(loss) ? std::abs(loss) : loss, {}};
    for (const auto& [name, metric] : metrics_) {
      const auto value = metric->compute().to(at::kCPU, at::kDouble);
      if (value.numel() == 1) values.metrics.insert(prefix + name, *value.const_data_ptr<double>());
    }
    return values;
  }

 private:
  // Returns the sums of this process on the device: loss, examples, then those of the metrics.
  torch::Tensor sums() const {
    std::vector<torch::Tensor> all = {loss_, at::full({1}, examples_, loss_.options())};
    for (const auto& [name, metric] : metrics_) all.push_back(metric->sums().to(loss_.device()));
    return at::cat(all);
  }

  // Takes sums on the CPU, in the order of `sums()`.
  void set_examples_and_metrics(const torch::Tensor& sums) {
    examples_ = static_cast<int64_t>(sums.const_data_ptr<double>()[1]);
    int64_t next = 2;
    for (const auto& [name, metric] : metrics_) {
      const int64_t size = metric->sums().numel();
      metric->set_sums(sums.narrow(0, next, size));
      next += size;
    }
  }

  torch::Tensor loss_;  // (1,), the sum of loss times examples
  int64_t examples_ = 0;
  const Metrics& metrics_;
  double seconds_before_ = 0;  // time of the epoch in earlier processes
  Stopwatch stopwatch_;
};

// A step as a CUDA graph. `batch_` is the batch of the current step.
class Trainer::GraphStep {
 public:
  GraphStep(torch::Device device, const std::function<StepOutput(const Batch&)>& step)
      : captured_(device, [this, step](const std::vector<torch::Tensor>& tensors) {
          batch_->set_tensors(tensors);
          const StepOutput output = step(*batch_);
          return std::vector<torch::Tensor>{output.loss, output.output, output.target};
        }) {}

  StepOutput operator()(Batch& batch) {
    batch_ = &batch;
    const auto outputs = captured_(batch.tensors());
    return {outputs[0], outputs[1], outputs[2]};
  }

 private:
  Batch* batch_ = nullptr;
  CapturedStep captured_;
};

Trainer::Trainer(TrainerOptions options)
    : options_(std::move(options)),
      device_(choose_device(options_)),
      precision_(options_.precision, device_),
      loss_(options_.loss ? options_.loss : Loss(cross_entropy)),
      metrics_(choose_metrics(options_)) {
  TORCH_CHECK(options_.max_epochs >= 1, "sconce::Trainer: expected max_epochs of at least 1, got ",
              options_.max_epochs);
  TORCH_CHECK(std::isfinite(options_.gradient_clip_val) && options_.gradient_clip_val >= 0,
              "sconce::Trainer: expected a gradient_clip_val of at least 0, got ",
              options_.gradient_clip_val);
  TORCH_CHECK(options_.accumulate_grad_batches >= 1,
              "sconce::Trainer: expected accumulate_grad_batches of at least 1, got ",
              options_.accumulate_grad_batches);
  TORCH_CHECK(!options_.graph || options_.accumulate_grad_batches == 1,
              "sconce::Trainer: expected accumulate_grad_batches 1 with graph, got ",
              options_.accumulate_grad_batches);
  TORCH_CHECK(!options_.graph || options_.process_group.world_size() == 1,
              "sconce::Trainer: expected a process group of one with graph, got one of ",
              options_.process_group.world_size());
  TORCH_CHECK(options_.save_every >= 0, "sconce::Trainer: expected save_every of at least 0, got ",
              options_.save_every);
  std::set<std::string> names;
  for (const auto& [name, metric] : metrics_) {
    TORCH_CHECK(metric, "sconce::Trainer: expected a metric for '", name, "', got null");
    TORCH_CHECK(name != "loss", "sconce::Trainer: expected no metric called 'loss', which is the ",
                "name of the loss");
    TORCH_CHECK(names.insert(name).second,
                "sconce::Trainer: expected metrics of different names, got two called '", name,
                "'");
  }
  if (options_.precision == Precision::fp16 && device_.is_cpu() &&
      options_.process_group.rank() == 0) {
    TORCH_WARN("sconce::Trainer: fp16 on a CPU takes several times as long as fp32 on most CPUs; ",
               "fp32 is faster, and bf16 where the CPU has AVX512-BF16 or AMX");
  }
}

void Trainer::check_fit(const detail::ModelSteps& model, const BatchLoader& train,
                        const char* who) const {
  const auto& group = options_.process_group;
  const bool is_alone = group.world_size() == 1;
  TORCH_CHECK(is_alone || model.no_sync, who, ": expected, in a process group of several, a ",
              "sconce::nn::DistributedDataParallel, got another model");
  if (model.no_sync) {
    const auto device = model.module.parameters().front().device();
    TORCH_CHECK(device == device_, who, ": expected the module of the DistributedDataParallel on ",
                device_, " from its construction on, got it on ", device);
  }
  train.check_world_size(group.world_size());
  if (!is_alone) check_ranks(group, train.size(), device_, who);
  check_batches(train.size(), who, "training data");
}

Fit Trainer::fit_of(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                    const BatchLoader& train) {
  return {.model = model.saved,
          .optimizer = optimizer,
          .scaler = scaler(),
          .device = device_,
          .process_group = options_.process_group,
          .max_epochs = options_.fast_dev_run ? 1 : options_.max_epochs,
          .batches = options_.fast_dev_run ? 1 : train.size(),
          .accumulate = options_.accumulate_grad_batches,
          .progress = {}};
}

FitResult Trainer::fit_model(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                             const FitData& data) {
  check_callbacks(data.callbacks);
  check_fit(model, data.train, "sconce::Trainer::fit");
  if (data.test) data.test->check_world_size(options_.process_group.world_size());
  if (data.test && options_.process_group.world_size() == 1) {
    check_batches(data.test->size(), "sconce::Trainer::fit", "test data");
  }
  RunScope run(metrics_, &scaler());
  Epoch epoch(device_, metrics_);
  Fit fit = fit_of(model, optimizer, data.train);
  fit.value_names = value_names(metrics_, data.test.has_value());
  fit.states = states_of(model, optimizer, scaler(), data.callbacks);
  fit.progress = {[&] { return epoch.progress(fit); },
                  [&](const c10::IValue& state) { epoch.load_progress(fit, state); }};
  call_all(data.callbacks, fit, &TrainerCallback::setup);
  prepare_model(model.module);
  const auto step = step_of(model, fit, data.callbacks, epoch);
  if (!options_.fast_dev_run) call_all(data.callbacks, fit, &TrainerCallback::load);
  CallbackScope scope(data.callbacks, fit, &TrainerCallback::on_fit_begin,
                      &TrainerCallback::on_fit_end);
  bool stopped = agree_to_stop(fit);
  while (!stopped && std::ssize(fit.epochs) < fit.max_epochs) {
    model.module.train();
    stopped = !train_epoch(step, fit, data.train.begin(fit.batch, std::ssize(fit.epochs)),
                           data.callbacks, epoch);
    if (stopped) break;
    if (data.test) test_epoch(model, fit, data);
    call_all(data.callbacks, fit, &TrainerCallback::on_epoch_end);
    stopped =
        pause(fit, data.callbacks, /*is_time=*/true) && std::ssize(fit.epochs) < fit.max_epochs;
  }
  scope.close();
  run.close();
  return {std::move(fit.epochs), stopped};
}

EpochMetrics Trainer::fit_model_epoch(const detail::ModelSteps& model,
                                      torch::optim::Optimizer& optimizer,
                                      const BatchLoader& train) {
  check_fit(model, train, "sconce::Trainer::fit_epoch");
  RunScope run(metrics_, &scaler());
  Epoch epoch(device_, metrics_);
  Fit fit = fit_of(model, optimizer, train);
  model.module.train();
  train_epoch(step_of(model, fit, {}, epoch), fit, train.begin(), {}, epoch);
  run.close();
  return std::move(fit.epochs.front());
}

// Returns whether any rank wants to stop, so that all stop at the same step.
bool Trainer::agree_to_stop(Fit& fit) const {
  if (fit.process_group.world_size() > 1) {
    const auto options = at::TensorOptions(at::kInt).device(device_);
    const auto flag = at::full({1}, fit.should_stop ? 1 : 0, options);
    fit.process_group.all_reduce(flag, distributed::ReduceOp::max);
    fit.should_stop = flag.item<int>() > 0;
  }
  return fit.should_stop;
}

// Saves the fit if it is time, and returns whether it stops. Ranks agree on a stop only here.
bool Trainer::pause(Fit& fit, const Callbacks& callbacks, bool is_time) const {
  const bool is_alone = fit.process_group.world_size() == 1;
  if (!is_time && !is_alone) return false;
  const bool stops = agree_to_stop(fit);
  if ((is_time || stops) && !options_.fast_dev_run) {
    call_all(callbacks, fit, &TrainerCallback::save);
  }
  return stops;
}

// Trains the rest of the epoch. Returns false if the fit stopped before its end.
bool Trainer::train_epoch(const TrainStep& one_step, Fit& fit, const BatchLoader::Next& next,
                          const Callbacks& callbacks, Epoch& epoch) {
  epoch.begin(fit.batch);
  const auto settings = precision_.settings();
  while (fit.batch < fit.batches) {
    one_step(next);
    call_all(callbacks, fit, &TrainerCallback::on_after_step);
    const bool is_time =
        options_.save_every > 0 && fit.batch / fit.accumulate % options_.save_every == 0;
    if (fit.batch < fit.batches && pause(fit, callbacks, is_time)) return false;
  }
  const double seconds = epoch.seconds();
  auto [loss, metrics] = epoch.values(options_.process_group, "train_");
  fit.epochs.push_back({.epoch = static_cast<int>(fit.epochs.size()) + 1,
                        .loss = loss,
                        .metrics = std::move(metrics),
                        .examples = epoch.examples(),
                        .seconds = seconds});
  fit.batch = 0;
  return true;
}

Trainer::TrainStep Trainer::step_of(const detail::ModelSteps& model, Fit& fit,
                                    const Callbacks& callbacks, Epoch& epoch) {
  if (!options_.graph) {
    return [&, this](const BatchLoader::Next& next) {
      train_step(model, fit, next, callbacks, epoch);
    };
  }
  const auto* ours = dynamic_cast<optim::Optimizer*>(&fit.optimizer);
  TORCH_CHECK(device_.is_cpu() || (ours != nullptr && ours->is_capturable()),
              "sconce::Trainer: expected with graph one of sconce's optimizers with fused kernels ",
              "and a learning rate that is a tensor on ", device_,
              " (ExtraOptions::lr), got another");
  const auto whole_step = [&, this](const Batch& batch) {
    optim::zero_grad(fit.optimizer);
    StepOutput output = backward(model, batch, /*of_step=*/1);
    check_gradients(model, fit.optimizer);
    step(fit.optimizer);
    return output;
  };
  const auto graph = std::make_shared<GraphStep>(device_, whole_step);
  return [&, this, graph](const BatchLoader::Next& next) {
    graph_step(*graph, fit, next, callbacks, epoch);
  };
}

// Like train_step, but forward, backward and the optimizer's step are one graph. The next replay
// overwrites the outputs, so the loss is cloned.
void Trainer::graph_step(GraphStep& graph, Fit& fit, const BatchLoader::Next& next,
                         const Callbacks& callbacks, Epoch& epoch) {
  RECORD_USER_SCOPE("step");
  Batch batch = next_batch(next, device_);
  const StepOutput output = graph(batch);
  epoch.add(output, batch.size());
  fit.loss = output.loss.clone();
  call_all(callbacks, fit, &TrainerCallback::on_before_step);
  ++fit.batch;
}

// Makes a step of one or more batches. Its range in a profile ends before `on_after_step`, in which
// callbacks may start or stop a profile.
void Trainer::train_step(const detail::ModelSteps& model, Fit& fit, const BatchLoader::Next& next,
                         const Callbacks& callbacks, Epoch& epoch) {
  RECORD_USER_SCOPE("step");
  const int64_t of_step = std::min(fit.accumulate, fit.batches - fit.batch);
  optim::zero_grad(fit.optimizer);
  for (int64_t i = 1; i <= of_step; ++i) {
    const bool sync = i == of_step || !model.no_sync;
    const std::shared_ptr<void> no_sync = sync ? nullptr : model.no_sync();
    const Batch batch = next_batch(next, device_);
    const StepOutput output = backward(model, batch, of_step);
    epoch.add(output, batch.size());
    fit.loss = output.loss;
  }
  check_gradients(model, fit.optimizer);
  call_all(callbacks, fit, &TrainerCallback::on_before_step);
  step(fit.optimizer);
  fit.batch += of_step;
}

// Adds the gradients of one batch of a step. Returns the output of the batch with a detached loss.
StepOutput Trainer::backward(const detail::ModelSteps& model, const Batch& batch, int64_t of_step) {
  StepOutput output;
  {
    RECORD_USER_SCOPE("forward");
    const auto autocast = precision_.autocast();
    output = model.train(batch);
  }
  RECORD_USER_SCOPE("backward");
  precision_.scale(of_step == 1 ? output.loss : output.loss / of_step).backward();
  output.loss = output.loss.detach();
  return output;
}

void Trainer::step(torch::optim::Optimizer& optimizer) {
  RECORD_USER_SCOPE("optimizer");
  if (options_.gradient_clip_val > 0) {
    precision_.unscale_(optimizer);
    // The optimizer's parameters and not the model's: other gradients are not zeroed or unscaled.
    nn::clip_grad_norm_(parameters_of(optimizer), options_.gradient_clip_val);
  }
  precision_.step(optimizer);
}

void Trainer::test_epoch(const detail::ModelSteps& model, Fit& fit, const FitData& data) {
  CallbackScope scope(data.callbacks, fit, &TrainerCallback::on_test_begin,
                      &TrainerCallback::on_test_end);
  for (const auto& [name, value] : test_model(model, *data.test, /*of_epoch=*/0)) {
    fit.epochs.back().metrics.insert("test_" + name, value);
  }
  scope.close();
}

MetricValues Trainer::evaluate_model(const detail::ModelSteps& model, const BatchLoader& batches) {
  batches.check_world_size(options_.process_group.world_size());
  RunScope run(metrics_);
  MetricValues values = test_model(model, batches);
  run.close();
  return values;
}

MetricValues Trainer::test_model(const detail::ModelSteps& model, const BatchLoader& batches,
                                 std::optional<int64_t> of_epoch) {
  RECORD_USER_SCOPE("test");
  const auto& group = options_.process_group;
  constexpr auto who = "sconce::Trainer::evaluate";
  if (group.world_size() == 1) check_batches(batches.size(), who, "data");
  const at::NoGradGuard no_grad;
  const ModeGuard restore(model.module);
  const auto settings = precision_.settings();
  const auto autocast = precision_.autocast();
  model.module.eval();
  for (const auto& buffer : model.module.buffers()) group.broadcast(buffer, 0);
  Epoch epoch(device_, metrics_);
  epoch.begin();
  const int64_t count =
      options_.fast_dev_run ? std::min<int64_t>(batches.size(), 1) : batches.size();
  const auto next = of_epoch ? batches.begin(0, *of_epoch) : batches.begin();
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = next_batch(next, device_);
    epoch.add(model.test(batch), batch.size());
  }
  auto [loss, metrics] = epoch.values(group, "");
  check_batches(epoch.examples(), who, "data");
  MetricValues values = {{"loss", loss}};
  for (const auto& [name, value] : metrics) values.insert(name, value);
  return values;
}

}  // namespace sconce
