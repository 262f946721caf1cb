#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/item_stream.hpp"

/// The part of a `StreamLoader` that reads the items of a stream in order. For internal use.
namespace sconce::data::detail {

/// The position of a loop in a stream.
struct StreamPlace {
  int64_t pass = 0;   // pass over the stream; each pass starts from a new copy
  int64_t chunk = 0;  // chunk of the pass: items that are shuffled together, or a single item
  int64_t taken = 0;  // number of items taken from the chunk
  std::optional<c10::IValue> stream = {};  // state of the stream at the start of the chunk, if
                                           // supported
};

// Throws if the options are invalid.
void check_stream_options(const StreamLoaderOptions& options);

// Returns the order of a chunk with the given number of items.
std::vector<int64_t> chunk_order(const StreamLoaderOptions& options, const StreamPlace& place,
                                 int64_t items);

// Reads the items of one rank, in order, starting at a place.
template <class Stream>
class StreamReader {
 public:
  using Item = StreamItem<Stream>;

  // The stream must outlive the reader. Throws if the stream ends before the items of the place's
  // chunk.
  StreamReader(const Stream& stream, const StreamLoaderOptions& options, StreamPlace place)
      : source_stream_(stream), options_(options), place_(std::move(place)), stream_(stream) {
    begin_pass();
    if (!load_state()) {
      for (int64_t i = 0; i < place_.chunk * chunk_size() && next_for_rank(); ++i) {
      }
    }
    take_again();
  }

  // Returns the next item of the pass, or `std::nullopt` at the end of the pass.
  std::optional<Item> next() {
    if (items_.empty()) read_chunk();
    if (items_.empty()) return {};
    const auto index = static_cast<size_t>(order_[static_cast<size_t>(place_.taken)]);
    std::optional<Item> item = std::move(items_[index]);
    if (++place_.taken == std::ssize(items_)) {
      items_.clear();
      place_ = {.pass = place_.pass, .chunk = place_.chunk + 1};
    }
    return item;
  }

  void next_pass() {
    items_.clear();
    place_ = {.pass = place_.pass + 1};
    begin_pass();
  }

  // Returns the place of the next item.
  StreamPlace place() {
    note_state();
    return place_;
  }

 private:
  int64_t chunk_size() const { return std::max<int64_t>(options_.shuffle_buffer, 1); }

  void begin_pass() {
    stream_.emplace(source_stream_);
    is_over_ = false;
    if constexpr (requires { stream_->set_epoch(place_.pass); }) stream_->set_epoch(place_.pass);
  }

  // Restores the state of the stream. Returns false if there is no state to restore.
  bool load_state() {
    if constexpr (ResumableStream<Stream>) {
      if (place_.stream) stream_->load_state_dict(*place_.stream);
      return place_.stream.has_value();
    }
    return false;
  }

  // Saves the state only when a place is requested, because saving may be expensive.
  void note_state() {
    if constexpr (ResumableStream<Stream>) {
      if (items_.empty()) place_.stream = c10::IValue(std::as_const(*stream_).state_dict());
    }
  }

  // Rereads the items of the chunk that contains the place.
  void take_again() {
    if (place_.taken == 0) return;
    const int64_t taken = std::exchange(place_.taken, 0);
    read_chunk();
    TORCH_CHECK(taken < std::ssize(items_), "sconce::data::StreamLoader: expected a stream that ",
                "returns as many items as before, got one that ends in pass ", place_.pass,
                " before the loop's position (item ", place_.chunk * chunk_size() + taken, ")");
    place_.taken = taken;
  }

  void read_chunk() {
    if (chunk_size() > 1) note_state();
    while (std::ssize(items_) < chunk_size()) {
      auto item = next_for_rank();
      if (!item) break;
      items_.push_back(*std::move(item));
    }
    order_ = chunk_order(options_, place_, std::ssize(items_));
  }

  // Reads one item for each rank and returns this rank's item, or `std::nullopt` if too few items
  // are left.
  std::optional<Item> next_for_rank() {
    std::optional<Item> own;
    for (int rank = 0; rank < options_.num_replicas; ++rank) {
      auto item = is_over_ ? std::optional<Item>() : stream_->next();
      is_over_ = !item;
      if (is_over_) return {};
      if (rank == options_.rank) own = std::move(item);
    }
    return own;
  }

  const Stream& source_stream_;
  StreamLoaderOptions options_;
  StreamPlace place_;
  std::optional<Stream> stream_;
  bool is_over_ = false;
  std::vector<Item> items_ = {};  // items of the chunk, kept until all have been taken
  std::vector<int64_t> order_ = {};
};

}  // namespace sconce::data::detail
