#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "sconce/data/detail/copy_stream.hpp"
#include "sconce/data/detail/read_ahead.hpp"

/// The part of a `Loader` that takes the batches of one loop. Not for direct use.
namespace sconce::data::detail {

// What is common to batches of any type.
struct MadeBatch {
  CopyStream::Wait wait = {};
};

// The exception of an item, on its way to the loop, which throws it as it was.
struct ItemError {
  int64_t item;
  std::exception_ptr error;
};

// One loop over a loader, in one thread.
class LoaderLoop {
 public:
  struct Options {
    int64_t first;  // index of the first batch
    int64_t last;   // index after that of the last batch
    int64_t epoch;
    int64_t ahead;  // number of batches that threads make ahead; 0: without threads
    std::shared_ptr<std::atomic<int64_t>> failed_item;  // of all loops over the loader; -1: none
  };

  // Starts a thread for each of the functions, which return a `MadeBatch`. Without threads the loop
  // calls the only function itself.
  LoaderLoop(std::vector<ReadAhead::Make> makers, Options options);

  // Waits for the current batch and returns it. If making it throws, the epoch is over, and this
  // and all further calls throw the exception.
  const MadeBatch& batch();

  // Goes to the next batch and releases this one. Throws as `batch()`.
  void advance();

  bool is_over() const { return index_ == options_.last; }
  int64_t epoch() const { return options_.epoch; }
  std::optional<int64_t> failed_item() const { return failed_item_; }

 private:
  std::shared_ptr<MadeBatch> next();
  [[noreturn]] void rethrow() const;

  Options options_;
  int64_t index_;
  ReadAhead::Make make_ = {};
  std::shared_ptr<MadeBatch> current_ = {};
  std::exception_ptr error_ = {};
  std::optional<int64_t> failed_item_ = {};
  std::optional<ReadAhead> ahead_ = {};
};

}  // namespace sconce::data::detail
