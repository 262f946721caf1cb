#include "sconce/data/detail/loader_loop.hpp"

#include <c10/util/Exception.h>

#include <utility>

#include "sconce/data/detail/read_ahead.hpp"

namespace sconce::data::detail {

LoaderLoop::LoaderLoop(std::vector<Make> makers, Options options)
    : options_(std::move(options)), index_(options_.first) {
  if (options_.ahead == 0) {
    make_ = std::move(makers.front());
  } else if (!is_over()) {
    ahead_ = std::make_unique<ReadAhead>(std::move(makers), options_.ahead, options_.first,
                                         options_.last);
  }
}

LoaderLoop::~LoaderLoop() = default;

const MadeBatch& LoaderLoop::batch() {
  if (current_) return *current_;
  if (error_) rethrow();
  TORCH_CHECK(!is_over(), "sconce::data::LoopIterator: expected a batch index below ",
              options_.last, ", got ", index_, ", where the epoch is over");
  try {
    current_ = next();
    return *current_;
  } catch (const ItemError& of_item) {
    error_ = of_item.error;
    failed_item_ = of_item.item;
  } catch (...) {
    error_ = std::current_exception();
  }
  options_.last = index_;
  rethrow();
}

std::shared_ptr<MadeBatch> LoaderLoop::next() {
  auto made = std::static_pointer_cast<MadeBatch>(ahead_ ? ahead_->next() : make_(index_, {}));
  if (made->wait) made->wait();
  return made;
}

void LoaderLoop::rethrow() const {
  if (options_.failed_item) *options_.failed_item = failed_item_.value_or(-1);
  std::rethrow_exception(error_);
}

void LoaderLoop::advance() {
  batch();  // batches are taken in order
  current_.reset();
  ++index_;
}

}  // namespace sconce::data::detail
