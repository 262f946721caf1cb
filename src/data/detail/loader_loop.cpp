#include "sconce/data/detail/loader_loop.hpp"

#include <utility>

namespace sconce::data::detail {

LoaderLoop::LoaderLoop(ReadAhead::Make make, const Range& range)
    : index_(range.first), last_(range.last), epoch_(range.epoch), make_(std::move(make)) {}

LoaderLoop::LoaderLoop(std::vector<ReadAhead::Make> workers, int64_t ahead, const Range& range)
    : index_(range.first), last_(range.last), epoch_(range.epoch) {
  if (!is_over()) ahead_.emplace(std::move(workers), ahead, range.first, range.last);
}

const MadeBatch& LoaderLoop::batch() {
  if (!current_) {
    try {
      current_ = std::static_pointer_cast<MadeBatch>(ahead_ ? ahead_->next() : make_(index_, {}));
    } catch (...) {
      last_ = index_;
      throw;
    }
    if (current_->wait) current_->wait();
  }
  return *current_;
}

void LoaderLoop::advance() {
  batch();  // batches are taken in order
  current_.reset();
  ++index_;
}

}  // namespace sconce::data::detail
