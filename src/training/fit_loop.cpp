#include "training/fit_loop.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "distributed/together.hpp"
#include "sconce/repr.hpp"
#include "state/state_visitor.hpp"
#include "training/batch_states.hpp"
#include "training/find_monitor.hpp"
#include "training/fit_checks.hpp"
#include "training/fit_metrics.hpp"
#include "training/fit_progress.hpp"
#include "training/test_model.hpp"

namespace sconce {

namespace {

constexpr auto fit_call = "sconce::Trainer::fit";

// Without a checkpoint, the optimizer does not need to support saving its state.
Stateful state_of(torch::optim::Optimizer& optimizer) {
  return {[&] { return Stateful(optimizer).state_dict(); },
          [&](const c10::IValue& state) { Stateful(optimizer).load_state_dict(state); },
          detail::class_name(typeid(optimizer)), [&] { return Stateful(optimizer).options(); }};
}

NamedStates states_of(const FitSetup& setup, const Callbacks& callbacks) {
  NamedStates states = {
      {"model", setup.model}, {"optimizer", state_of(setup.optimizer)}, {"scaler", setup.scaler}};
  std::set<std::string> names = {"model", "optimizer", "scaler"};
  for (TrainerCallback* callback : callbacks) {
    auto state = callback->state();
    if (!state) continue;
    state->set_former_names(callback->former_names());
    TORCH_CHECK(names.insert(callback->name()).second,
                "sconce::Trainer::fit: expected stateful callbacks to have unique names other than "
                "'model', 'optimizer', and 'scaler', got two called '",
                callback->name(),
                "'; rename one callback, for example with EarlyStoppingOptions::name");
    states.emplace_back(callback->name(), std::move(*state));
  }
  return states;
}

std::optional<c10::IValue> compiler_state(const TrainerOptions& options) {
  if (options.compiler == nullptr) return {};
  return options.compiler->state_dict();
}

}  // namespace

FitLoop::FitLoop(const TrainerOptions& options, amp::MixedPrecision& precision,
                 const detail::ModelSteps& steps, torch::optim::Optimizer& of, const FitData& data,
                 const char* caller)
    : Fit({.model = steps.module,
           .optimizer = of,
           .scaler = precision.scaler(),
           .device = options.device.value(),
           .process_group = options.process_group,
           .max_epochs = options.fast_dev_run ? 1 : options.max_epochs,
           .num_training_batches = options.fast_dev_run ? 1 : data.train.size(),
           .accumulate_grad_batches = options.accumulate_grad_batches}),
      options_(options),
      precision_(precision),
      steps_(steps),
      data_(data),
      metrics_(metrics_of(options, steps)),
      run_(metrics_, &scaler),
      sums_(device, metrics_, steps.may_have_values) {
  check_fit(options, steps, of, data, caller);
}

FitResult FitLoop::run() {
  if (options_.max_time) begin_ = std::chrono::steady_clock::now();
  start();
  CallbackScope scope(data_.callbacks, *this, &TrainerCallback::on_fit_start,
                      &TrainerCallback::on_fit_end);
  const auto stops_early = [&] {
    check_time();
    return agree_to_stop() && std::ssize(epochs) < max_epochs;
  };
  bool stopped = stops_early();
  while (!stopped && std::ssize(epochs) < max_epochs) {
    stopped = !train_epoch(data_.train.begin(batch, std::ssize(epochs)));
    if (stopped) break;
    if (data_.test) test_epoch();
    end_epoch();
    stopped = stops_early();
    if (!options_.fast_dev_run) save(data_.callbacks);
  }
  scope.close();
  run_.close();
  return {std::move(epochs), stopped, stopped ? stop_reason() : std::string()};
}

EpochMetrics FitLoop::run_epoch(std::shared_ptr<TrainStep>& kept) {
  step_ = make_train_step(options_, precision_, steps_, optimizer, std::exchange(kept, nullptr));
  train_epoch(data_.train.begin());
  run_.close();
  if (options_.graph && device.is_cpu()) kept = step_;
  return std::move(epochs.front());
}

// Resumes an earlier fit if a callback provides one. The order of these steps is important:
// - setup: callbacks check their requirements before anything changes;
// - the model moves to its device: states must be copied to the tensors that will be trained;
// - the step is created: an unsupported optimizer is rejected before a file is read;
// - load: a callback restores the parts, and then restores the position by calling `resume`.
// Until `load` is called, an error on one rank makes every rank throw.
void FitLoop::start() {
  distributed::together(process_group, fit_call, [&] {
    states = states_of(*this, data_.callbacks);
    value_names = names_of_values(metrics_, data_.test);
    value_modes = modes_of_values(metrics_, data_.test);
    may_have_values = steps_.may_have_values;
    call(&TrainerCallback::setup);
    steps_.module.to(device);
    steps_.module.train();
    step_ = make_train_step(options_, precision_, steps_, optimizer);
    return distributed::RankValues();
  });
  if (!options_.fast_dev_run) call(&TrainerCallback::load);
}

// Trains the rest of the epoch. Returns false if the fit stopped before the end of the epoch.
bool FitLoop::train_epoch(const AnyBatches::Next& next) {
  steps_.module.train();
  sums_.begin(batch);
  const auto settings = precision_.flags();
  while (batch < num_training_batches) {
    train_step(next);
    sums_.agree_on_names(process_group);
    call(&TrainerCallback::on_after_optimizer_step);
    check_time();
    if (batch < num_training_batches && pause()) return false;
  }
  step_mode = step_->mode();
  const double seconds = sums_.seconds();
  auto [mean_loss, metrics] = sums_.values(process_group, "train_");
  epochs.push_back({.epoch = static_cast<int>(epochs.size()) + 1,
                    .loss = mean_loss,
                    .metrics = std::move(metrics),
                    .examples = sums_.examples(),
                    .seconds = seconds});
  batch = 0;
  return true;
}

// Runs a step with one or more batches. The step's range in a profile ends before
// `on_after_optimizer_step`, because callbacks may start or stop a profile there.
void FitLoop::train_step(const AnyBatches::Next& next) {
  RECORD_USER_SCOPE("step");
  const int64_t batches_in_step = std::min(accumulate_grad_batches, num_training_batches - batch);
  step_->zero_grad();
  for (int64_t i = 1; i <= batches_in_step; ++i) {
    const bool sync = i == batches_in_step || !steps_.no_sync;
    const std::shared_ptr<void> no_sync = sync ? nullptr : steps_.no_sync();
    AnyBatch given = next_batch(next, device, batch + i - 1);
    const int64_t examples = given.size();
    const StepOutput output = step_->backward(std::move(given), batches_in_step);
    sums_.add(output, examples);
    loss = mean_loss(output);
  }
  check_gradients(model, optimizer);
  call(&TrainerCallback::on_before_optimizer_step);
  step_->update();
  batch += batches_in_step;
}

void FitLoop::test_epoch() {
  CallbackScope scope(data_.callbacks, *this, &TrainerCallback::on_test_start,
                      &TrainerCallback::on_test_end);
  for (const auto& set : data_.test) {
    const auto values =
        test_model(options_, precision_, metrics_, steps_, set.batches, /*epoch_loss=*/0);
    for (const auto& [name, value] : values) {
      epochs.back().metrics.insert(set.name + '_' + name, value);
    }
  }
  scope.close();
}

void FitLoop::end_epoch() {
  if (std::exchange(may_have_values, false)) {
    for (const auto& [name, value] : epochs.back().metrics) {
      if (!has_value(*this, name)) value_names.push_back(name);
    }
  }
  call(&TrainerCallback::on_epoch_end);
  warn_non_finite_loss();
}

// If a callback stops the fit, no warning is needed, because the callback has already responded to
// the loss.
void FitLoop::warn_non_finite_loss() {
  const double epoch_loss = epochs.back().loss;
  if (std::isfinite(epoch_loss) || is_stopping() || process_group.rank() > 0) return;
  if (std::exchange(has_warned_, true)) return;
  TORCH_WARN(fit_call, ": the loss of epoch ", epochs.back().epoch, " is ", repr(epoch_loss),
             ", and training continues; use the callback sconce::TerminateOnNaN to stop the fit in "
             "this case");
}

// Reads only the host clock, so this function does not wait for the device.
void FitLoop::check_time() {
  if (!begin_) return;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - *begin_;
  if (passed >= *options_.max_time) {
    stop("max_time of " + repr(options_.max_time->count()) + " s has passed");
  }
}

// Saves the fit mid-epoch if a callback requests a save, and returns whether the fit stops. In a
// fit with several ranks, the ranks can agree to stop only when they save.
bool FitLoop::pause() {
  Callbacks callbacks_to_save;
  std::copy_if(data_.callbacks.begin(), data_.callbacks.end(),
               std::back_inserter(callbacks_to_save),
               [&](const auto& callback) { return callback->should_save(*this); });
  if (callbacks_to_save.empty() && process_group.world_size() > 1) return false;
  const bool stops = agree_to_stop();
  save(stops ? data_.callbacks : callbacks_to_save);
  return stops;
}

void FitLoop::save(const Callbacks& saving) {
  if (!saving.empty()) call(&TrainerCallback::on_before_save);
  call_all(saving, *this, &TrainerCallback::save);
}

// Returns whether any rank wants to stop, so that all ranks stop at the same step.
bool FitLoop::agree_to_stop() {
  if (process_group.world_size() == 1) return is_stopping();
  const auto stopping = distributed::together(
      process_group, fit_call, [&] { return distributed::RankValues{is_stopping() ? 1 : 0}; });
  for (size_t rank = stopping.size(); rank-- > 0;) {
    if (stopping[rank][0] != 0) stop(c10::str("rank ", rank, " stopped the fit"));
  }
  return is_stopping();
}

void FitLoop::call(CallbackVerb verb) {
  call_all(data_.callbacks, *this, verb);
}

RunProgress FitLoop::progress() const {
  const bool mid_epoch = batch > 0;
  return {
      std::ssize(epochs), batch,
      as_state(FitProgress{.batches = num_training_batches,
                           .accumulate = accumulate_grad_batches,
                           .epochs = epochs,
                           .sums = sums_.all_sums(process_group, mid_epoch),
                           .values = mid_epoch ? sums_.value_names() : std::vector<std::string>(),
                           .seconds = mid_epoch ? sums_.seconds() : 0,
                           .compiler = compiler_state(options_),
                           .train = states_of_ranks(data_.train, process_group)})};
}

void FitLoop::resume(const RunProgress& progress) {
  constexpr auto error_prefix = "sconce::Trainer::fit: expected ";
  auto saved =
      from_state<FitProgress>(progress.extra, "sconce::Trainer::fit: a checkpoint's 'extra'");
  TORCH_CHECK(saved.batches == num_training_batches, error_prefix, saved.batches,
              " training batches (as in the checkpoint), got ", num_training_batches);
  TORCH_CHECK(progress.epoch == std::ssize(saved.epochs), error_prefix, "'epoch' to be ",
              std::ssize(saved.epochs),
              " (the number of finished epochs in the checkpoint's 'extra'), got ", progress.epoch);
  TORCH_CHECK(progress.batch <= num_training_batches, error_prefix, "'batch' of at most ",
              num_training_batches, " in a checkpoint, got ", progress.batch);
  const bool is_known = saved.accumulate != 0;
  TORCH_CHECK(!is_known || saved.accumulate == accumulate_grad_batches, error_prefix,
              "accumulate_grad_batches ", saved.accumulate, " (as in the checkpoint), got ",
              accumulate_grad_batches);
  if (options_.compiler && saved.compiler) options_.compiler->load_state_dict(*saved.compiler);
  if (saved.train) load_state_of_rank(data_.train, *saved.train, process_group);
  epochs = std::move(saved.epochs);
  batch = progress.batch;
  if (batch > 0) {
    sums_.load(saved.sums, std::move(saved.values), process_group.rank(), saved.seconds);
  }
}

}  // namespace sconce
