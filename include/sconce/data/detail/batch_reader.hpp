#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/detail/loader_base.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/item_source.hpp"
#include "sconce/fwd.hpp"

/// The parts of a `DataLoader` that read a batch's items. For internal use.
namespace sconce::data::detail {

// Returns the generator for an item, which does not depend on the thread that reads the item.
at::Generator item_generator(const EpochItems& epoch, int64_t item);

// Returns the current exception. If it is a c10::Error, adds the index of the item to its message.
std::exception_ptr error_of_item(int64_t item);

// Reads the items of a batch in one thread.
template <class Source, class Collate>
class BatchReader {
 public:
  BatchReader(const Source& source, const Collate& collate) : source_(source), collate_(collate) {}

  // Returns the batch. If an item's `get` throws, wraps the exception in an `ItemError`.
  auto read(const EpochItems& epoch, int64_t batch, const std::stop_token& stop) {
    const std::vector<int64_t> indices = epoch.of(batch);
    if constexpr (requires { source_.get(0); } || DrawsItem<Source>) {
      std::vector<std::remove_cvref_t<decltype(get(epoch, 0))>> items;
      items.reserve(indices.size());
      for (const int64_t index : indices) {
        if (stop.stop_requested()) throw Stopped();
        try {
          items.push_back(get(epoch, index));
        } catch (...) {
          throw ItemError{index, error_of_item(index)};
        }
      }
      return collate_(std::move(items));
    } else {
      auto items = source_.get_batch(std::vector<size_t>(indices.begin(), indices.end()));
      if constexpr (requires { collate_(std::move(items)); }) {
        return collate_(std::move(items));
      } else {
        return items;  // already a batch returned by the source
      }
    }
  }

  struct Stopped {};

 private:
  auto get(const EpochItems& epoch, int64_t index) {
    if constexpr (DrawsItem<Source>) {
      return source_.get(index, item_generator(epoch, index));
    } else {
      return source_.get(index);
    }
  }

  // Each thread has its own copy of a torch::data dataset, because the functions that read from it
  // are not const.
  std::conditional_t<ItemSource<Source>, const Source&, Source> source_;
  const Collate& collate_;
};

}  // namespace sconce::data::detail
