#include "sconce/data/detail/loader_base.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/check_loading.hpp"

namespace sconce::data::detail {

std::vector<int64_t> EpochItems::of(int64_t batch) const {
  const int64_t start = batch * batch_size;
  std::vector<int64_t> indices(static_cast<size_t>(std::min(batch_size, items - start)));
  if (order.defined()) {
    std::copy_n(order.const_data_ptr<int64_t>() + start, indices.size(), indices.begin());
  } else {
    std::iota(indices.begin(), indices.end(), start);
  }
  return indices;
}

LoaderBase::LoaderBase(const char* caller, DataLoaderOptions options, std::optional<int64_t> items)
    : caller_(caller), options_(std::move(options)), epochs_(caller, options_.sampler) {
  TORCH_CHECK(items, caller,
              ": expected a dataset with a known size, got a dataset without a size");
  items_ = *items;
  TORCH_CHECK(items_ >= 0, caller, ": expected a source with a non-negative size, got ", items_);
  check_loading(caller, options_);
  TORCH_CHECK(!options_.shuffle || !options_.sampler, caller,
              ": expected either shuffle or a sampler (which sets the order), got both");
  TORCH_CHECK(!options_.sampler || options_.sampler.dataset_size() == items_, caller,
              ": expected a sampler for ", items_,
              " items (the number of items in the dataset), got a sampler for ",
              options_.sampler.dataset_size());
  if (options_.shuffle) options_.sampler = RandomSampler(items_, options_.seed);
}

void LoaderBase::set_epoch(int64_t epoch) {
  epochs_.set(epoch);
}

int64_t LoaderBase::size() const {
  const int64_t items = options_.sampler ? options_.sampler.size() : items_;
  const bool has_partial_batch = items % options_.batch_size != 0;
  return items / options_.batch_size + (has_partial_batch && !options_.drop_last ? 1 : 0);
}

EpochItems LoaderBase::epoch_items(int64_t first_batch, int64_t epoch) const {
  TORCH_CHECK(first_batch >= 0 && first_batch <= size(), caller_,
              "::begin: expected a batch index from 0 to ", size(), ", got ", first_batch);
  EpochItems items{.order = {},
                   .items = items_,
                   .batch_size = options_.batch_size,
                   .seed = options_.seed,
                   .epoch = static_cast<uint64_t>(epochs_.named(epoch))};
  if (!options_.sampler) return items;
  items.order = options_.sampler.indices(epoch).to(at::kCPU, at::kLong).contiguous();
  items.items = items.order.numel();
  TORCH_CHECK(items.items == options_.sampler.size(), caller_, "::begin: expected ",
              options_.sampler.size(), " items from the sampler (as reported by its size()), got ",
              items.items);
  const auto* begin = items.order.const_data_ptr<int64_t>();
  const auto outside = [this](int64_t item) { return item < 0 || item >= items_; };
  const auto* found = std::find_if(begin, begin + items.items, outside);
  TORCH_CHECK(found == begin + items.items, caller_,
              "::begin: expected non-negative indices below ", items_, " from the sampler, got ",
              *found);
  return items;
}

}  // namespace sconce::data::detail
