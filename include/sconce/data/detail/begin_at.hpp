#pragma once

#include <c10/util/Exception.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace sconce::data::detail {

/// Checks that an iterator does not reach the end before the batch at the given index. Does nothing
/// unless the source defines an `end()` that can be compared with the iterator.
/// @throw c10::Error with the actual number of batches and the source's `size()`.
template <class Source, class Iterator>
void check_not_at_end(const Source& source, const Iterator& place, int64_t index) {
  if constexpr (requires {
                  { place == source.end() } -> std::convertible_to<bool>;
                  { source.size() } -> std::convertible_to<int64_t>;
                }) {
    if (!(place == source.end())) return;
    TORCH_CHECK(false, "sconce::BatchSource: expected ", static_cast<int64_t>(source.size()),
                " batches in an epoch (as reported by the source's size()), got ", index);
  }
}

/// Returns an iterator that points to the given batch of the source's current epoch. Calls
/// `begin(batch)` if the source defines it. Otherwise, calls `begin()` and skips batches.
template <class Source>
auto begin_at(const Source& source, int64_t batch) {
  if constexpr (requires { source.begin(batch); }) {
    return source.begin(batch);
  } else {
    auto place = source.begin();
    for (int64_t i = 0; i < batch; ++i) {
      check_not_at_end(source, place, i);
      ++place;
    }
    return place;
  }
}

/// A position in a source.
template <class Source>
struct SourcePlace {
  std::shared_ptr<const Source> copy;  ///< the copy to which `iterator` belongs, or null
  decltype(std::declval<const Source&>().begin()) iterator;  ///< the batch at this position

  /// Checks that the position is before the end of the copied source, or before the end of the
  /// original source if it was not copied.
  /// @throw c10::Error in the same cases as `check_not_at_end`.
  void check(const Source& source, int64_t index) const {
    check_not_at_end(copy ? *copy : source, iterator, index);
  }
};

/// Returns the source position for the given epoch and batch. Calls
/// `begin(batch, epoch)` if the source defines it, as `Batches` and `DataLoader` do. Otherwise, if
/// the source defines `set_epoch`, calls `set_epoch` on a copy of the source. Then calls
/// `begin(batch)`, or calls `begin()` and skips the preceding batches.
template <class Source>
SourcePlace<Source> begin_at(const Source& source, int64_t batch, int64_t epoch) {
  if constexpr (requires { source.begin(batch, epoch); }) {
    return {nullptr, source.begin(batch, epoch)};
  } else if constexpr (requires(Source& own) { own.set_epoch(epoch); }) {
    static_assert(std::copy_constructible<Source>,
                  "sconce::data::begin_at: expected a source that can be copied, or a source with "
                  "begin(batch, epoch) that does not need a copy for the epoch");
    const auto copy = std::make_shared<Source>(source);
    copy->set_epoch(epoch);
    return {copy, begin_at(std::as_const(*copy), batch)};
  } else {
    return {nullptr, begin_at(source, batch)};
  }
}

}  // namespace sconce::data::detail
