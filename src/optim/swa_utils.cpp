#include "sconce/optim/swa_utils.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host_call.hpp"
#include "nn/copy_module.hpp"
#include "optim/anneal_strategy.hpp"
#include "optim/move_towards.hpp"
#include "optim/scheduler_arguments.hpp"
#include "sconce/nn/lazy.hpp"
#include "state/state_visitor.hpp"
#include "tensor_groups.hpp"

namespace sconce::optim::swa_utils {

using lr_scheduler::AnnealStrategy;
using torch::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

constexpr const char* caller = "sconce::optim::swa_utils::AveragedModel";

void check_decay(const char* function, double decay) {
  TORCH_CHECK_VALUE(decay >= 0 && decay <= 1, "sconce::optim::swa_utils::", function,
                    ": expected decay between 0 and 1, got ", decay);
}

Tensor mean(const Tensor& averaged, const Tensor& current, const Tensor& num_averaged) {
  return averaged + (current - averaged) / (num_averaged + 1);
}

// The weight is a float, because Python reads the number from a float tensor.
void move_to_mean(const Tensors& averaged, const Tensors& current, const Tensor& num_averaged) {
  const at::NoGradGuard no_grad;
  if (can_lerp(averaged)) {
    at::_foreach_lerp_(averaged, current, (num_averaged + 1).reciprocal().item());
  } else {
    for (size_t i = 0; i < averaged.size(); ++i) {
      averaged[i].copy_(mean(averaged[i], current[i], num_averaged));
    }
  }
}

}  // namespace

SWALR::SWALR(torch::optim::Optimizer& optimizer, const lr_scheduler::PerGroup<double>& swa_lr,
             const SWALROptions& options)
    : GroupLRScheduler(optimizer),
      anneal_epochs_(options.anneal_epochs),
      anneal_strategy_(options.anneal_strategy) {
  const size_t groups = optimizer.param_groups().size();
  const auto& lrs = swa_lr.values();
  TORCH_CHECK_VALUE(
      !swa_lr.is_list() || lrs.size() == groups,
      "sconce::optim::swa_utils::SWALR: expected swa_lr to be one value or a list of ", groups,
      ", one for each parameter group, got ", lrs.size());
  TORCH_CHECK_VALUE(
      anneal_epochs_ >= 0,
      "sconce::optim::swa_utils::SWALR: expected anneal_epochs to be at least 0, got ",
      anneal_epochs_);
  for (size_t i = 0; i < groups; ++i) {
    groups_->at(i)["swa_lr"] = lrs[swa_lr.is_list() ? i : 0];
  }
  start();
}

// Returns the weight of `swa_lr` in the learning rate, from 0 to 1, after the given number of
// steps.
double SWALR::anneal(int64_t step) const {
  const auto epochs = static_cast<double>(std::max<int64_t>(1, anneal_epochs_));
  const double t = std::clamp(static_cast<double>(step) / epochs, 0.0, 1.0);
  return anneal_strategy_ == AnnealStrategy::linear ? t : (1 - std::cos(std::numbers::pi * t)) / 2;
}

double SWALR::get_lr(size_t group, double lr, bool) const {
  const bool has_value = group < groups_->size() && groups_->at(group).contains("swa_lr");
  TORCH_CHECK_VALUE(
      has_value,
      "sconce::optim::swa_utils::SWALR: expected as many parameter groups as at construction, "
      "got more");
  const double swa_lr = groups_->at(group).at("swa_lr");
  const int64_t step =
      anneal_epochs_ == 0 ? std::max<int64_t>(1, step_count_ - 1) : step_count_ - 1;
  const double before = anneal(step - 1), now = anneal(step);
  const double begin = before == 1 ? swa_lr : (lr - before * swa_lr) / (1 - before);
  return swa_lr * now + begin * (1 - now);
}

// As in Python, the position in the schedule is the number of calls so far, so a restart keeps the
// current position.
void SWALR::restart() {
  auto undo = lr_scheduler::restore_unless_released(last_epoch_);
  last_epoch_ = 0;
  set_lrs([this](size_t group, double lr) { return get_lr(group, lr, false); });
  undo.release();
}

void SWALR::visit_options(StateVisitor& state) {
  state.count("anneal_epochs", anneal_epochs_);
  state("_anneal_strategy", anneal_strategy_);
  GroupLRScheduler::visit_options(state);
}

AvgFn get_swa_avg_fn() {
  return [](const Tensor& averaged, const Tensor& current, const Tensor& num_averaged) {
    const at::NoGradGuard no_grad;
    return mean(averaged, current, num_averaged);
  };
}

AvgFn get_ema_avg_fn(double decay) {
  check_decay("get_ema_avg_fn", decay);
  return [decay](const Tensor& averaged, const Tensor& current, const Tensor&) {
    const at::NoGradGuard no_grad;
    return decay * averaged + (1 - decay) * current;
  };
}

MultiAvgFn get_swa_multi_avg_fn() {
  return move_to_mean;
}

MultiAvgFn get_ema_multi_avg_fn(double decay) {
  check_decay("get_ema_multi_avg_fn", decay);
  return [decay](const Tensors& averaged, const Tensors& current, const Tensor&) {
    const at::NoGradGuard no_grad;
    move_towards(averaged, current, decay);
  };
}

// The tensors in the copy and in the model, paired by index and without duplicates.
struct AveragedModelBase::Pairs {
  struct List {
    Tensors own = {};
    Tensors current = {};
  };
  List averaged = {};
  List copied = {};
};

AveragedModelBase::AveragedModelBase(const torch::nn::Module& model, AveragedModelOptions options)
    : options_(std::move(options)) {
  TORCH_CHECK_VALUE(!options_.avg_fn || !options_.multi_avg_fn, caller,
                    ": expected only one of avg_fn and multi_avg_fn, got both");
  nn::check_initialized(model, caller);
  const auto device = options_.device.value_or(torch::kCPU);
  n_averaged =
      register_buffer("n_averaged", at::zeros({}, at::TensorOptions(at::kLong).device(device)));
  const auto copy = register_module("module", nn::copy_module(model, caller));
  if (options_.device) copy->to(*options_.device);
}

AveragedModelBase::Pairs AveragedModelBase::pairs_of(const torch::nn::Module& model) const {
  Pairs pairs;
  SeenTensors seen;
  const auto add = [&](const StateDict& own, const StateDict& others, Pairs::List& list) {
    TORCH_CHECK(own.size() == others.size(), caller, "::update_parameters: expected ", own.size(),
                " tensors (as at construction), got ", others.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor &average = own[i].value(), &value = others[i].value();
      if (!average.defined() || !seen.insert(average.unsafeGetTensorImpl()).second) continue;
      TORCH_CHECK(value.sizes() == average.sizes() && value.scalar_type() == average.scalar_type(),
                  caller, "::update_parameters: expected '", own[i].key(), "' of shape ",
                  average.sizes(), " and type ", average.scalar_type(), ", got ", value.sizes(),
                  " and ", value.scalar_type());
      list.own.push_back(average.detach());
      list.current.push_back(value.detach().to(average.device()));
    }
  };
  const auto& copy = *children().front();
  add(copy.named_parameters(), model.named_parameters(), pairs.averaged);
  add(copy.named_buffers(), model.named_buffers(),
      options_.use_buffers ? pairs.averaged : pairs.copied);
  return pairs;
}

void AveragedModelBase::update_parameters(const torch::nn::Module& model) {
  sconce::detail::check_not_capturing(std::string(caller) + "::update_parameters");
  const at::NoGradGuard no_grad;
  const auto [averaged, copied] = pairs_of(model);
  const auto copy = [](const Pairs::List& list) {
    for (size_t i = 0; i < list.own.size(); ++i) list.own[i].copy_(list.current[i]);
  };
  if (n_averaged.item<int64_t>() == 0) {
    copy(averaged);
  } else if (options_.avg_fn) {
    for (size_t i = 0; i < averaged.own.size(); ++i) {
      const Tensor& average = averaged.own[i];
      average.copy_(options_.avg_fn(average, averaged.current[i], n_averaged.to(average.device())));
    }
  } else {
    TensorGroups own, current;
    for (const auto& tensor : averaged.own) add_to_group(own, tensor);
    for (const auto& tensor : averaged.current) add_to_group(current, tensor);
    for (size_t i = 0; i < own.size(); ++i) average_group(own[i], current[i]);
  }
  copy(copied);
  n_averaged.add_(1);
}

// Python computes the means with different sequences of operations on the CPU and on GPUs.
void AveragedModelBase::average_group(const Tensors& own, const Tensors& current) const {
  const auto device = own.front().device();
  const Tensor number = n_averaged.to(device);
  if (options_.multi_avg_fn) {
    options_.multi_avg_fn(own, current, number);
  } else if (device.is_cpu()) {
    for (size_t i = 0; i < own.size(); ++i) own[i].copy_(mean(own[i], current[i], number));
  } else {
    move_to_mean(own, current, number);
  }
}

namespace detail {

BatchNormMeans::BatchNormMeans(torch::nn::Module& model) {
  const auto add = [this](auto* layer) {
    if (layer == nullptr) return;
    layer->reset_running_stats();
    auto& momentum = layer->options.momentum();
    momenta_.emplace_back(&momentum, momentum);
    momentum.reset();
  };
  model.apply([&](torch::nn::Module& part) {
    add(dynamic_cast<torch::nn::BatchNorm1dImpl*>(&part));
    add(dynamic_cast<torch::nn::BatchNorm2dImpl*>(&part));
    add(dynamic_cast<torch::nn::BatchNorm3dImpl*>(&part));
  });
}

BatchNormMeans::~BatchNormMeans() {
  // Restores in reverse order, because a layer that occurs twice in the model was recorded twice.
  for (auto noted = momenta_.rbegin(); noted != momenta_.rend(); ++noted) {
    *noted->first = noted->second;
  }
}

}  // namespace detail

}  // namespace sconce::optim::swa_utils
