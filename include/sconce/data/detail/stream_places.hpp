#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "sconce/data/detail/stream_reader.hpp"

namespace sconce::data::detail {

// A position of a loop: before a batch of an epoch.
struct LoopPosition {
  int64_t epoch = 0;
  int64_t batch = 0;
  bool operator==(const LoopPosition&) const = default;
};

// The last position that the loops over a stream have reached. Several threads may use it at once.
class StreamPlaces {
 public:
  void note(LoopPosition position, StreamPlace place);

  // Returns the place at a position, if it is the last one.
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
