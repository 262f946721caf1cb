#include "sconce/data/detail/epoch_count.hpp"

#include <c10/util/Exception.h>

#include <string>

#include "data/check_epoch.hpp"
#include "host_call.hpp"

namespace sconce::data::detail {

EpochCount::EpochCount(const char* caller, const AnySampler& sampler)
    : caller_(caller),
      requires_set_epoch_(sampler.requires_set_epoch()),
      state_(std::make_shared<State>(sampler.epoch())) {}

void EpochCount::set(int64_t epoch) const {
  state_->next = check_epoch(epoch, std::string(caller_) + "::set_epoch");
  state_->is_taken = false;
}

int64_t EpochCount::take() const {
  if (sconce::detail::is_capturing()) {
    sconce::detail::check_not_capturing(std::string(caller_) + "::begin");
  }
  if (!requires_set_epoch_) return state_->next++;
  const int64_t epoch = state_->next;
  if (state_->is_taken.exchange(true) && !state_->has_warned.exchange(true)) {
    TORCH_WARN(
        caller_,
        "::begin: expected a call to set_epoch before each epoch, because a DistributedSampler "
        "changes its order only in set_epoch; this epoch repeats the order of epoch ",
        epoch, ". Call set_epoch on the loader, because the loader contains a copy of the sampler");
  }
  return epoch;
}

int64_t EpochCount::named(int64_t epoch) const {
  return check_epoch(epoch, std::string(caller_) + "::begin");
}

}  // namespace sconce::data::detail
