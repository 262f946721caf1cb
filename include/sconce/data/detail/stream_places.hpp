#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "sconce/data/detail/stream_reader.hpp"

namespace sconce::data::detail {

// The position of a loop, which is directly before a batch of an epoch.
struct LoopPosition {
  int64_t epoch = 0;
  int64_t batch = 0;
  bool operator==(const LoopPosition&) const = default;
};

// Stores the most recent position of the loops over a stream. Several threads may access it
// concurrently.
class StreamPlaces {
 public:
  void note(LoopPosition position, StreamPlace place);

  // Returns the place in the stream for a position, if that position is the most recent one.
  std::optional<StreamPlace> find(LoopPosition position) const;

  c10::IValue state_dict() const;
  // Throws if `state` was not returned by `state_dict`.
  void load_state_dict(const c10::IValue& state);

 private:
  mutable std::mutex mutex_;
  LoopPosition position_ = {};
  StreamPlace place_ = {};
};

}  // namespace sconce::data::detail
