#pragma once

#include <cstdint>

namespace sconce::data {

/// Returns an iterator at a batch of a source. Calls `begin(batch)` if the source has it, as
/// `Batches` and `Loader` do. Otherwise calls `begin()` and skips the batches before.
template <class Source>
auto begin_at(const Source& source, int64_t batch) {
  if constexpr (requires { source.begin(batch); }) {
    return source.begin(batch);
  } else {
    auto place = source.begin();
    for (; batch > 0; --batch) ++place;
    return place;
  }
}

}  // namespace sconce::data
