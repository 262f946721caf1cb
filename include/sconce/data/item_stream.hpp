#pragma once

#include <ATen/core/ivalue.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

namespace detail {

template <class S>
using StreamItem = std::remove_cvref_t<decltype(*std::declval<S&>().next())>;

}  // namespace detail

/// A source with an unknown number of items, such as a simulator, a socket, or a file that is too
/// large to count. `next()` returns a `std::optional` that contains the next item, or is empty at
/// the end of the stream. An item may have any type in which `nn::TensorTree` finds tensors.
///
/// A loader copies the stream, and each pass starts from a new copy. If the stream defines
/// `set_epoch(pass)`, the loader calls `set_epoch` on the copy with the pass number, starting at 0.
/// Python: `torch.utils.data.IterableDataset`.
template <class S>
concept ItemStream = std::copy_constructible<S> && requires(S& stream) {
  typename detail::StreamItem<S>;
  { stream.next() } -> std::same_as<std::optional<detail::StreamItem<S>>>;
} && nn::TensorTree<detail::StreamItem<S>>::any;

/// A stream that can resume at a position saved by another copy of the stream. `state_dict()`
/// returns the position, and `load_state_dict(state)` restores the position. If a stream does not
/// define these functions, a loader resumes by rereading all earlier items. Python: the
/// `state_dict` and `load_state_dict` methods of a torchdata dataset.
template <class S>
concept ResumableStream =
    ItemStream<S> && requires(S& stream, const S& read, const c10::IValue& state) {
      { read.state_dict() } -> std::convertible_to<c10::IValue>;
      stream.load_state_dict(state);
    };

/// A stream over the elements of a C++20 range, which is copied for each pass.
template <std::ranges::input_range Range>
  requires std::copy_constructible<Range>
class RangeStream {
 public:
  explicit RangeStream(Range range) : range_(std::move(range)) {}
  /// Copies the range. The copied stream starts at the beginning of the range.
  RangeStream(const RangeStream& other) : range_(other.range_) {}
  RangeStream& operator=(const RangeStream&) = delete;
  ~RangeStream() = default;

  std::optional<std::ranges::range_value_t<Range>> next() {
    if (!place_) {
      place_.emplace(std::ranges::begin(range_));
    } else if (*place_ != std::ranges::end(range_)) {
      ++*place_;
    }
    if (*place_ == std::ranges::end(range_)) return {};
    return **place_;
  }

 private:
  Range range_;
  std::optional<std::ranges::iterator_t<Range>> place_ = {};
};

/// Returns a stream over the elements of a C++20 range, such as a view that converts numbers to
/// tensors.
template <std::ranges::input_range Range>
RangeStream<std::remove_cvref_t<Range>> make_stream(Range&& range) {
  return RangeStream<std::remove_cvref_t<Range>>(std::forward<Range>(range));
}

}  // namespace sconce::data
