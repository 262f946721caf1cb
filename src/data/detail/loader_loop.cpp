#include "sconce/data/detail/loader_loop.hpp"

#include <c10/util/Exception.h>

#include <utility>

#include "sconce/data/detail/read_ahead.hpp"

namespace sconce::data::detail {

LoaderLoop::LoaderLoop(std::vector<Make> makers, Options options)
    : options_(std::move(options)), index_(options_.first) {
  if (options_.ahead == 0) {
    make_ = std::move(makers.front());
  } else if (index_ < options_.last) {
    ahead_ = std::make_unique<ReadAhead>(std::move(makers), options_.ahead, options_.first,
                                         options_.last);
  }
}

LoaderLoop::~LoaderLoop() = default;

bool LoaderLoop::is_over() {
  if (options_.last == unknown_end && !current_ && !error_) take();
  return index_ == options_.last;
}

const MadeBatch& LoaderLoop::batch() {
  if (current_) return *current_;
  if (!error_ && index_ != options_.last) take();
  if (error_) rethrow();
  TORCH_CHECK(current_, "sconce::data::LoopIterator: expected a batch index below ", options_.last,
              ", got ", index_, ", which is past the end of the epoch");
  return *current_;
}

// Fetches the batch at the current index, or stores the error that occurred while creating it. If
// there is no batch, the epoch is over.
void LoaderLoop::take() {
  try {
    current_ = next();
    if (!current_) options_.last = index_;
  } catch (const ItemError& item_error) {
    error_ = item_error.error;
    failed_item_ = item_error.item;
  } catch (...) {
    error_ = std::current_exception();
  }
}

std::shared_ptr<MadeBatch> LoaderLoop::next() {
  auto made = std::static_pointer_cast<MadeBatch>(ahead_ ? ahead_->next() : make_(index_, {}));
  if (made && made->wait) made->wait();
  return made;
}

void LoaderLoop::rethrow() {
  options_.last = index_;
  if (options_.failed_item) *options_.failed_item = failed_item_.value_or(-1);
  std::rethrow_exception(error_);
}

void LoaderLoop::advance() {
  batch();  // fetches the batches in order
  current_.reset();
  ++index_;
}

}  // namespace sconce::data::detail
