#include "optim/group_rates.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

namespace sconce::optim {

namespace {

// Returns the number rounded to the tensor's type.
double rounded(double number, c10::ScalarType type) {
  if (type == c10::kFloat) return static_cast<float>(number);
  if (type == c10::kHalf) return static_cast<c10::Half>(static_cast<float>(number));
  if (type == c10::kBFloat16) return static_cast<c10::BFloat16>(static_cast<float>(number));
  return number;
}

const void* first_of(const torch::optim::OptimizerParamGroup& group) {
  return group.params().empty() ? nullptr : group.params().front().unsafeGetTensorImpl();
}

}  // namespace

GroupRates::GroupRates(std::vector<torch::optim::OptimizerParamGroup>& groups,
                       torch::optim::OptimizerOptions& defaults, at::Tensor given)
    : groups_(groups), defaults_(defaults), original_lr_(std::move(given)) {
  write();
}

// Assigns a learning rate to every group.
void GroupRates::match() {
  const auto belongs = [](const Rate& rate, const auto& group) {
    return rate.first == first_of(group);
  };
  const auto is_given = [this](const Rate& rate) { return rate.tensor.is_same(original_lr_); };
  const size_t count = groups_.size();
  if (rates_.size() >= count &&
      std::equal(groups_.begin(), groups_.end(), rates_.begin(),
                 [&](const auto& group, const auto& rate) { return belongs(rate, group); })) {
    return;
  }
  auto before = std::exchange(rates_, std::vector<Rate>(count));
  for (size_t index = 0; index < count; ++index) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const auto& rate) {
      return belongs(rate, groups_[index]);
    });
    if (found == before.end()) continue;
    rates_[index] = *found;
    before.erase(found);
  }
  for (size_t index = 0; index < count; ++index) {
    if (rates_[index].tensor.defined()) continue;
    rates_[index] = new_rate(groups_[index]);
    if (is_given(rates_[index])) std::erase_if(before, is_given);
  }
  rates_.insert(rates_.end(), before.begin(), before.end());
}

// Stores the group's learning rate in the user's tensor if no group uses that tensor yet and the
// tensor's value equals the group's learning rate. Otherwise, creates a new tensor.
GroupRates::Rate GroupRates::new_rate(torch::optim::OptimizerParamGroup& group) const {
  Rate rate = {.first = first_of(group)};
  if (rate.first != nullptr) rate.owner = StateOwner(group.params().front());
  const double lr = rounded(group.options().get_lr(), original_lr_.scalar_type());
  const bool is_used = std::any_of(rates_.begin(), rates_.end(), [this](const auto& other) {
    return other.tensor.is_same(original_lr_);
  });
  if (is_used || lr != defaults_.get_lr()) {
    rate.tensor = at::empty_like(original_lr_);
  } else {
    rate.tensor = original_lr_;
    rate.written = lr;
    group.options().set_lr(lr);
  }
  return rate;
}

// Sets the learning rates in the options to the rounded values in the tensors. Saving the state
// reads the tensors. Whether or not the state has been saved, a schedule must continue from the
// same learning rate. The default learning rate is kept equal to the value of the user's tensor, so
// that groups added later start with that value.
void GroupRates::write() {
  const at::NoGradGuard no_grad;
  match();
  for (size_t index = 0; index < groups_.size(); ++index) {
    auto& options = groups_[index].options();
    auto& rate = rates_[index];
    const double lr = options.get_lr();
    if (rate.written == lr) continue;
    rate.tensor.fill_(lr);
    rate.written = rounded(lr, rate.tensor.scalar_type());
    rate.version = rate.tensor._version();
    options.set_lr(rate.written);
    if (rate.tensor.is_same(original_lr_)) defaults_.set_lr(rate.written);
  }
}

void GroupRates::read() {
  write();
  for (size_t index = 0; index < groups_.size(); ++index) {
    if (rates_[index].version != rates_[index].tensor._version()) read_rate(index);
  }
}

void GroupRates::read_all() {
  write();
  for (size_t index = 0; index < groups_.size(); ++index) read_rate(index);
}

void GroupRates::read_rate(size_t index) {
  auto& rate = rates_[index];
  rate.written = rate.tensor.item<double>();
  rate.version = rate.tensor._version();
  groups_[index].options().set_lr(rate.written);
}

void GroupRates::rewrite() {
  for (auto& rate : rates_) rate.written = std::numeric_limits<double>::quiet_NaN();
  write();
}

void GroupRates::read_defaults() {
  defaults_.set_lr(original_lr_.item<double>());
}

}  // namespace sconce::optim
