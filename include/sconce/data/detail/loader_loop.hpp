#pragma once

#include <cstdint>
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

// One loop over a loader, in one thread. The functions that make batches return a `MadeBatch`.
class LoaderLoop {
 public:
  // The batches of a loop: from `first` to `last - 1` in this epoch.
  struct Range {
    int64_t first;
    int64_t last;
    int64_t epoch;
  };

  // Reads each batch when it is asked for.
  LoaderLoop(ReadAhead::Make make, const Range& range);

  // Starts a thread for each worker; they read up to `ahead` batches ahead.
  LoaderLoop(std::vector<ReadAhead::Make> workers, int64_t ahead, const Range& range);

  // Waits for the current batch and returns it.
  const MadeBatch& batch();

  // Goes to the next batch and releases this one.
  void advance();

  bool is_over() const { return index_ == last_; }
  int64_t epoch() const { return epoch_; }

 private:
  int64_t index_;
  int64_t last_;
  int64_t epoch_;
  ReadAhead::Make make_ = {};
  std::shared_ptr<MadeBatch> current_ = {};
  std::optional<ReadAhead> ahead_ = {};
};

}  // namespace sconce::data::detail
