#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace sconce::data::detail {

/// Returns the iterator of a batch in a source, in the source's own epoch: `begin(batch)`, or
/// `begin()` and a skip.
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

/// A place in a source.
template <class Source>
struct SourcePlace {
  std::shared_ptr<const Source> copy;                        ///< what `iterator` is in, if not null
  decltype(std::declval<const Source&>().begin()) iterator;  ///< the batch at the place
};

/// Returns the place of a batch in a source's epoch. Calls `begin(batch, epoch)` if the source has
/// it, as `Batches` and `Loader` do. Otherwise, if the source has `set_epoch`, calls it on a copy.
/// Then it calls `begin(batch)`, or `begin()` and skips the batches before.
template <class Source>
SourcePlace<Source> begin_at(const Source& source, int64_t batch, int64_t epoch) {
  if constexpr (requires { source.begin(batch, epoch); }) {
    return {nullptr, source.begin(batch, epoch)};
  } else if constexpr (requires(Source& own) { own.set_epoch(epoch); }) {
    static_assert(std::copy_constructible<Source>,
                  "sconce::data::begin_at: expected a source that can be copied, or that has "
                  "begin(batch, epoch) and needs no copy for the epoch");
    const auto copy = std::make_shared<Source>(source);
    copy->set_epoch(epoch);
    return {copy, begin_at(std::as_const(*copy), batch)};
  } else {
    return {nullptr, begin_at(source, batch)};
  }
}

}  // namespace sconce::data::detail
