#include "sconce/data/detail/read_ahead.hpp"

#include <ATen/ThreadLocalState.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "data/one_thread.hpp"

namespace sconce::data::detail {

ReadAhead::ReadAhead(std::vector<Make> workers, int64_t ahead, int64_t first, int64_t last)
    : next_to_make_(first), next_to_take_(first), last_(last) {
  TORCH_CHECK(!workers.empty(), "sconce::data::ReadAhead: expected at least 1 worker, got none");
  TORCH_CHECK(ahead >= 1, "sconce::data::ReadAhead: expected ahead to be at least 1, got ", ahead);
  places_.resize(static_cast<size_t>(std::clamp<int64_t>(last - first, 1, ahead)));
  for (auto& make : workers) {
    threads_.emplace_back([this, make = std::move(make),
                           state = at::ThreadLocalState()](const std::stop_token& stop) {
      const at::ThreadLocalStateGuard guard(state);
      use_one_thread();
      work(make, stop);
    });
  }
}

ReadAhead::~ReadAhead() {
  for (auto& thread : threads_) thread.request_stop();  // stop all threads before joining the first
}

ReadAhead::Place& ReadAhead::place_of(int64_t index) {
  return places_[static_cast<size_t>(index) % places_.size()];
}

void ReadAhead::work(const Make& make, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_place = [&] {
      return next_to_make_ >= last_ || next_to_make_ < next_to_take_ + std::ssize(places_);
    };
    if (!batch_taken_.wait(lock, stop, has_place) || stop.stop_requested() ||
        next_to_make_ >= last_)
      return;
    const int64_t index = next_to_make_++;
    lock.unlock();
    Place made{.is_made = true};
    try {
      made.batch = make(index, stop);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    place_of(index) = std::move(made);
    batch_made_.notify_one();
  }
}

std::shared_ptr<void> ReadAhead::next() {
  std::unique_lock lock(mutex_);
  if (next_to_take_ >= last_) return nullptr;
  Place& place = place_of(next_to_take_);
  batch_made_.wait(lock, [&] { return place.is_made; });
  const Place taken = std::exchange(place, {});
  ++next_to_take_;
  if (taken.error) last_ = next_to_take_;
  batch_taken_.notify_all();
  lock.unlock();
  if (taken.error) std::rethrow_exception(taken.error);
  return taken.batch;
}

}  // namespace sconce::data::detail
