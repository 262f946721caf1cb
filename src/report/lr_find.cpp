#include "sconce/report/lr_find.hpp"

#include <ATen/Context.h>
#include <ATen/ceil_div.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "nn/keep_generator.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/mode_guard.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

namespace {

constexpr auto lr_find_name = "sconce::lr_find";
constexpr double lr_find_decay = 0.98;    // for the moving average
constexpr double lr_find_divergence = 4;  // relative to the lowest loss
constexpr int64_t left_out_end = 5;       // the losses at the end may already be rising

int64_t left_out_begin(const LRFindOptions& options) {
  return options.num_it / 10;  // the average is not smooth before this
}

void set_lrs(torch::optim::Optimizer& optimizer, double lr) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(lr);
  if (auto* ours = dynamic_cast<optim::Optimizer*>(&optimizer)) ours->write_lr();
}

double loss_of(const Fit& fit) {
  const int ranks = fit.process_group.world_size();
  if (ranks == 1) return fit.loss.item<double>();
  const auto loss = fit.loss.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  fit.process_group.all_reduce(loss);
  return (loss / ranks).item<double>();
}

// Returns the index in the middle of the longest strictly decreasing subsequence.
std::optional<size_t> middle_of_descent(const std::vector<double>& values) {
  std::vector<size_t> length(values.size(), 1), before(values.size(), 0);
  size_t last = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (values[j] <= values[i] || length[j] < length[i]) continue;
      length[i] = length[j] + 1;
      before[i] = j;
    }
    if (length[i] > length[last]) last = i;
  }
  if (values.empty() || length[last] == 1) return {};
  for (size_t steps = length[last] / 2; steps > 0; --steps) last = before[last];
  return last;
}

}  // namespace

LineChart LRFindResult::chart(std::string title) const {
  ChartSeries series = {.name = "smoothed loss", .x = {}, .y = losses};
  for (const double lr : lrs) series.x.push_back(std::log10(lr));
  return {.title = std::move(title),
          .x_label = "log10 of the learning rate",
          .panels = {{.y_label = "loss", .series = {std::move(series)}}}};
}

namespace detail {

// Saves the state that a fit modifies.
struct LRSweep::Saved {
  explicit Saved(const Fit& fit)
      : modes(fit.model), optimizer(fit.optimizer), state(optimizer.state_dict().deepcopy()) {
    for (const auto& parameter : fit.model.parameters()) {
      tensors.emplace_back(parameter, parameter.detach().clone());
      const auto gradient = parameter.grad();
      if (gradient.defined()) tensors.emplace_back(gradient, gradient.detach().clone());
      gradients.emplace_back(parameter, gradient);
    }
    for (const auto& buffer : fit.model.buffers()) {
      tensors.emplace_back(buffer, buffer.detach().clone());
    }
    generators.emplace_back();
    if (!fit.device.is_cpu()) {
      generators.emplace_back(at::globalContext().defaultGenerator(fit.device));
    }
  }

  void restore() {
    const at::NoGradGuard no_grad;
    for (auto& [tensor, value] : tensors) tensor.copy_(value);
    for (auto& [parameter, gradient] : gradients) parameter.mutable_grad() = gradient;
    optimizer.load_state_dict(state);
  }

  nn::ModeGuard modes;                       // restored by its destructor
  std::deque<nn::KeepGenerator> generators;  // restored by their destructors
  std::vector<std::pair<torch::Tensor, torch::Tensor>> tensors, gradients;
  Stateful optimizer;
  c10::IValue state;
};

LRSweep::LRSweep(LRFindOptions options) : options_(std::move(options)) {
  TORCH_CHECK(std::isfinite(options_.start_lr) && options_.start_lr > 0, lr_find_name,
              ": expected start_lr to be above 0, got ", options_.start_lr);
  TORCH_CHECK(std::isfinite(options_.end_lr) && options_.end_lr > options_.start_lr, lr_find_name,
              ": expected end_lr to be above start_lr (", options_.start_lr, "), got ",
              options_.end_lr);
  TORCH_CHECK(options_.num_it >= 10, lr_find_name, ": expected num_it to be at least 10, got ",
              options_.num_it);
}

TrainerOptions LRSweep::trainer_options(const AnyBatches& train) const {
  TrainerOptions trainer = options_.trainer;
  const int64_t batches = std::max<int64_t>(1, train.size());
  const int64_t batches_per_step = std::max(1, trainer.accumulate_grad_batches);
  trainer.max_epochs =
      static_cast<int>(at::ceil_div(options_.num_it, at::ceil_div(batches, batches_per_step)));
  trainer.max_time.reset();
  trainer.graph = false;
  trainer.compiler = nullptr;
  trainer.fast_dev_run = false;
  trainer.metrics = Metrics();
  return trainer;
}

double LRSweep::lr_of(int64_t step) const {
  const double part = static_cast<double>(step) / static_cast<double>(options_.num_it - 1);
  return options_.start_lr * std::pow(options_.end_lr / options_.start_lr, part);
}

void LRSweep::setup(Fit& fit) {
  nn::check_initialized(fit.model, lr_find_name);
  saved_ = std::make_shared<Saved>(fit);
}

void LRSweep::on_fit_start(Fit& fit) {
  set_lrs(fit.optimizer, lr_of(0));
}

void LRSweep::on_after_optimizer_step(Fit& fit) {
  const double loss = loss_of(fit);
  if (!std::isfinite(loss)) {
    diverged_ = true;
    return fit.stop("the loss is not finite");
  }
  const auto step = std::ssize(found_.lrs);
  mean_ = lr_find_decay * mean_ + (1 - lr_find_decay) * loss;
  found_.lrs.push_back(lr_of(step));
  found_.losses.push_back(mean_ / (1 - std::pow(lr_find_decay, step + 1)));
  const double lowest = *std::min_element(found_.losses.begin(), found_.losses.end());
  diverged_ = options_.stop_div && found_.losses.back() > lr_find_divergence * std::abs(lowest);
  if (diverged_) return fit.stop("the loss diverges");
  if (step + 1 == options_.num_it) return fit.stop("all learning rates were tried");
  set_lrs(fit.optimizer, lr_of(step + 1));
}

void LRSweep::on_fit_end(Fit&) {
  saved_->restore();
  saved_.reset();
}

// In a fit with several ranks, the ranks can agree to stop only when they save.
bool LRSweep::should_save(const Fit& fit) const {
  return fit.process_group.world_size() > 1;
}

LRFindResult LRSweep::result() const {
  const int64_t first = left_out_begin(options_);
  const int64_t last = std::ssize(found_.lrs) - left_out_end;
  TORCH_CHECK(
      !diverged_ || last > first, lr_find_name, ": expected a loss that stays finite and below ",
      lr_find_divergence, " times its lowest value for more than ", first + left_out_end,
      " steps, got a loss that diverged after ", found_.lrs.size(), " steps at a learning rate of ",
      found_.lrs.empty() ? options_.start_lr : found_.lrs.back(),
      "; choose a smaller start_lr, or check the data and the loss");
  LRFindResult result = found_;
  const std::vector<double> curve(found_.losses.begin() + first, found_.losses.begin() + last);
  if (const auto middle = middle_of_descent(curve)) {
    result.suggestion = found_.lrs[*middle + static_cast<size_t>(first)];
  }
  return result;
}

}  // namespace detail

}  // namespace sconce
