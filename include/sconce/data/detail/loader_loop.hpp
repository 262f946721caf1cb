#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

/// The part of a loader that fetches batches for a single loop. For internal use.
namespace sconce::data::detail {

class ReadAhead;

// The type-independent part of a batch.
struct MadeBatch {
  std::function<void()> wait = {};  // called before the batch is used
};

template <class Batch>
struct TypedBatch : MadeBatch {
  Batch batch;
};

// Returns a batch in the form that a `LoaderLoop` expects.
template <class Batch>
std::shared_ptr<void> wrap_batch(Batch batch, std::function<void()> wait = {}) {
  return std::shared_ptr<MadeBatch>(
      std::make_shared<TypedBatch<Batch>>(TypedBatch<Batch>{{std::move(wait)}, std::move(batch)}));
}

// Transports an item's exception to the loop, which rethrows it unchanged.
struct ItemError {
  int64_t item;
  std::exception_ptr error;
};

// The value of `last` for a loop that runs until its function returns null.
inline constexpr int64_t unknown_end = std::numeric_limits<int64_t>::max();

// One loop over a loader, in one thread.
class LoaderLoop {
 public:
  // Creates the batch with the given index. See `ReadAhead::Make`.
  using Make = std::function<std::shared_ptr<void>(int64_t index, const std::stop_token& stop)>;

  struct Options {
    int64_t first;  // index of the first batch
    int64_t last;   // index after the last batch, or `unknown_end`
    int64_t epoch;
    int64_t ahead = 0;  // number of batches that threads prefetch; 0 means no threads
    std::shared_ptr<std::atomic<int64_t>> failed_item = {};  // shared by all loops of a loader; -1
                                                             // if none failed
  };

  // Starts a thread for each function in `makers`. The functions return a result of `wrap_batch`.
  // Without threads, the loop itself calls the only function.
  LoaderLoop(std::vector<Make> makers, Options options);
  ~LoaderLoop();

  // Waits for the current batch and returns it. If an exception is thrown while the batch is being
  // created, the epoch ends, and this call and all later calls throw the exception.
  const MadeBatch& batch();

  // Advances to the next batch and releases this one. Throws the same exceptions as `batch()`.
  void advance();

  // Returns whether the loop has ended. If the end is unknown, waits for the batch at this
  // position.
  bool is_over();

  int64_t epoch() const { return options_.epoch; }
  std::optional<int64_t> failed_item() const { return failed_item_; }

 private:
  std::shared_ptr<MadeBatch> next();
  void take();
  [[noreturn]] void rethrow();

  Options options_;
  int64_t index_;
  Make make_ = {};
  std::shared_ptr<MadeBatch> current_ = {};
  std::exception_ptr error_ = {};
  std::optional<int64_t> failed_item_ = {};
  std::unique_ptr<ReadAhead> ahead_;
};

}  // namespace sconce::data::detail
