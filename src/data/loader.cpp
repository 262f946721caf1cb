#include "sconce/data/loader.hpp"

#include <c10/util/Exception.h>

#include <algorithm>

#include "data/batch_count.hpp"

namespace sconce::data::detail {

LoaderBase::LoaderBase(LoaderOptions options, std::optional<int64_t> source_size)
    : options_(std::move(options)) {
  constexpr auto who = "sconce::data::Loader: ";
  TORCH_CHECK(source_size, who, "expected a dataset that has a size, got one without");
  source_size_ = *source_size;
  TORCH_CHECK(source_size_ >= 0, who, "expected a source of 0 items or more, got ", source_size_);
  TORCH_CHECK(options_.batch_size >= 1, who, "expected a batch_size of 1 or more, got ",
              options_.batch_size);
  TORCH_CHECK(options_.num_workers >= 0, who, "expected num_workers of 0 or more, got ",
              options_.num_workers);
  TORCH_CHECK(options_.prefetch_factor >= 1, who, "expected a prefetch_factor of 1 or more, got ",
              options_.prefetch_factor);
  TORCH_CHECK(!options_.shuffle || !options_.sampler, who,
              "expected either shuffle or a sampler, which sets the order, got both");
  TORCH_CHECK(!options_.sampler || options_.sampler.dataset_size() == source_size_, who,
              "expected a sampler for ", source_size_, " items as in the source, got one for ",
              options_.sampler.dataset_size());
  if (options_.shuffle) options_.sampler = RandomSampler(source_size_, options_.seed);
  epochs_ = EpochCount("sconce::data::Loader", options_.sampler);
}

void LoaderBase::set_epoch(int64_t epoch) {
  epochs_.set(epoch);
}

int64_t LoaderBase::size() const {
  return batch_count(options_.sampler ? options_.sampler.size() : source_size_, options_.batch_size,
                     options_.drop_last);
}

EpochItems LoaderBase::epoch_items(int64_t first_batch, int64_t epoch) const {
  check_first_batch(first_batch, size(), "sconce::data::Loader::begin");
  EpochItems items{.order = {},
                   .items = source_size_,
                   .batch_size = options_.batch_size,
                   .seed = options_.seed,
                   .epoch = static_cast<uint64_t>(epochs_.named(epoch))};
  if (!options_.sampler) return items;
  items.order = options_.sampler.indices(epoch).to(at::kCPU, at::kLong).contiguous();
  items.items = items.order.numel();
  TORCH_CHECK(items.items == options_.sampler.size(), "sconce::data::Loader::begin: expected ",
              options_.sampler.size(), " items from the sampler, as its size() says, got ",
              items.items);
  const auto* begin = items.order.const_data_ptr<int64_t>();
  const auto outside = [this](int64_t item) { return item < 0 || item >= source_size_; };
  const auto* found = std::find_if(begin, begin + items.items, outside);
  TORCH_CHECK(found == begin + items.items, "sconce::data::Loader::begin: expected items ",
              "of at least 0 and below ", source_size_, " from the sampler, got ", *found);
  return items;
}

}  // namespace sconce::data::detail
