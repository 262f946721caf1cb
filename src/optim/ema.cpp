#include "sconce/optim/ema.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include "host_call.hpp"
#include "nn/can_copy.hpp"
#include "optim/move_towards.hpp"
#include "tensor_groups.hpp"

namespace sconce::optim {

namespace {

// The averages and the current values, both grouped by type and device in the same order.
struct Groups {
  TensorGroups averages = {};
  TensorGroups values = {};
};

// Autocast caches casts for each parameter and does not check whether the values have changed.
void forget_casts() {
  at::autocast::clear_cache();
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(torch::nn::Module& model,
                                                   const ExponentialMovingAverageOptions& options)
    : options_(options) {
  TORCH_CHECK_VALUE(options.decay >= 0 && options.decay <= 1,
                    "sconce::optim::ExponentialMovingAverage: expected decay between 0 and 1, got ",
                    options.decay);
  for (const auto& item : model.named_parameters()) add(item.key(), item.value(), false);
  for (const auto& item : model.named_buffers()) {
    add(item.key(), item.value(), !options.use_buffers);
  }
}

void ExponentialMovingAverage::add(const std::string& name, const torch::Tensor& value,
                                   bool is_copied) {
  const at::NoGradGuard no_grad;
  auto average = value.detach().clone();
  if (options_.device) average = average.to(*options_.device);
  averages_.push_back({name, value, average, is_copied});
}

void ExponentialMovingAverage::check(const char* what) const {
  TORCH_CHECK(
      !is_swapped_, "sconce::optim::ExponentialMovingAverage::", what,
      ": expected the model's own values, got the averages because a SwapGuard is still alive");
  for (const auto& [name, value, average, is_copied] : averages_) {
    TORCH_CHECK(value.sizes() == average.sizes() && value.scalar_type() == average.scalar_type(),
                "sconce::optim::ExponentialMovingAverage::", what, ": expected '", name,
                "' of shape ", average.sizes(), " and type ", average.scalar_type(),
                " (as at construction), got ", value.sizes(), " and ", value.scalar_type(),
                "; a lazy layer must be initialized first");
  }
}

void ExponentialMovingAverage::update() {
  detail::run_on_host(typeid(*this), "update", [this] { update_now(); });
}

void ExponentialMovingAverage::update_now() {
  const at::NoGradGuard no_grad;
  check("update");
  Groups copied, moved;
  for (const auto& [name, value, average, is_copied] : averages_) {
    auto& groups = is_copied || n_averaged_ == 0 ? copied : moved;
    add_to_group(groups.averages, average);
    add_to_group(groups.values, value.to(average.device()));
  }
  for (size_t i = 0; i < copied.averages.size(); ++i) {
    at::_foreach_copy_(copied.averages[i], copied.values[i]);
  }
  for (size_t i = 0; i < moved.averages.size(); ++i) {
    move_towards(moved.averages[i], moved.values[i], options_.decay);
  }
  ++n_averaged_;
}

ExponentialMovingAverage::SwapGuard::SwapGuard(ExponentialMovingAverage& averages)
    : averages_(averages) {
  const at::NoGradGuard no_grad;
  averages.check("SwapGuard");
  std::vector<torch::Tensor> there;
  for (const auto& [name, value, average, is_copied] : averages.averages_) {
    own_.push_back(value.variable_data());
    there.push_back(average.to(value.device()));
  }
  for (size_t i = 0; i < there.size(); ++i) averages.averages_[i].value.set_data(there[i]);
  averages.is_swapped_ = true;
  forget_casts();
}

ExponentialMovingAverage::SwapGuard::~SwapGuard() {
  for (size_t i = 0; i < own_.size(); ++i) averages_.averages_[i].value.set_data(own_[i]);
  averages_.is_swapped_ = false;
  forget_casts();
}

torch::OrderedDict<std::string, torch::Tensor> ExponentialMovingAverage::state_dict() const {
  torch::OrderedDict<std::string, torch::Tensor> state;
  state.insert("n_averaged", at::empty({}, at::kLong).fill_(n_averaged_));
  for (const auto& [name, value, average, is_copied] : averages_) {
    state.insert("module." + name, average);
  }
  return state;
}

void ExponentialMovingAverage::load_state_dict(
    const torch::OrderedDict<std::string, torch::Tensor>& state) {
  detail::check_not_capturing(typeid(*this), "load_state_dict");
  constexpr const char* error_prefix =
      "sconce::optim::ExponentialMovingAverage::load_state_dict: expected ";
  const at::NoGradGuard no_grad;
  const auto own = state_dict();
  for (const auto& item : own) {
    const auto* tensor = state.find(item.key());
    TORCH_CHECK(tensor != nullptr, error_prefix, "a state with the key '", item.key(), "'");
    TORCH_CHECK(tensor->sizes() == item.value().sizes(), error_prefix, "'", item.key(),
                "' of shape ", item.value().sizes(), ", got ", tensor->sizes());
    TORCH_CHECK(can_copy(item.value(), *tensor), error_prefix, "values that can be converted to ",
                item.value().scalar_type(), " for '", item.key(), "', got a ", tensor->toString());
  }
  for (const auto& item : state) {
    TORCH_CHECK(own.contains(item.key()), error_prefix, "no key '", item.key(), "'");
  }
  for (const auto& item : own) item.value().copy_(state[item.key()]);
  n_averaged_ = own["n_averaged"].item<int64_t>();
}

}  // namespace sconce::optim
