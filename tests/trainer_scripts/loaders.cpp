#include "trainer_scripts/loaders.hpp"

#include <torch/types.h>

#include <set>

#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/data/weighted_random_sampler.hpp"
#include "sconce/distributed/process_group.hpp"

namespace trainer_scripts {

namespace {

namespace data = sconce::data;
using data::Dataset;

// Reads rows one at a time. The noise leaves the first feature unchanged, because that feature
// identifies the item.
class Source {
 public:
  Source(Dataset rows, std::set<int64_t> bad, bool by_torch)
      : rows_(std::move(rows)), bad_(std::move(bad)), by_torch_(by_torch) {}
  int64_t size() const { return rows_.data.size(0); }
  Dataset get(int64_t index, const at::Generator& generator) const {
    TORCH_CHECK(!by_torch_ || !bad_.contains(index), "bad item ", index);
    if (bad_.contains(index)) throw BadItem{index};
    const auto row = rows_.data[index].clone();
    row.narrow(0, 1, 7).add_(torch::rand({7}, generator));
    return {row, rows_.target[index]};
  }

 private:
  Dataset rows_;
  std::set<int64_t> bad_;
  bool by_torch_;  // throws a c10::Error
};

struct Noise {
  Dataset operator()(Dataset batch, const at::Generator& generator) const {
    const auto data = batch.data.clone();
    data.narrow(1, 1, 7).add_(torch::rand({data.size(0), 7}, generator));
    return {data, batch.target};
  }
};

template <class L>
class LoaderOf : public AnyLoader {
 public:
  explicit LoaderOf(L loader) : loader_(std::make_shared<L>(std::move(loader))) {}

  std::shared_ptr<AnyLoader> copy() const override {
    return std::make_shared<LoaderOf>(L(*loader_));
  }
  sconce::AnyBatches for_trainer() const override { return *loader_; }
  void set_epoch(int64_t epoch) override { loader_->set_epoch(epoch); }

  Loop begin(const std::optional<Start>& start) const override {
    using Iterator = decltype(loader_->begin());
    const auto place = std::make_shared<Iterator>(start ? loader_->begin(start->batch, start->epoch)
                                                        : loader_->begin());
    const auto is_first = std::make_shared<bool>(true);
    Loop loop;
    loop.next = [keep = loader_, place, is_first]() -> std::optional<Dataset> {
      if (!std::exchange(*is_first, false)) ++*place;
      if (*place == std::default_sentinel) return {};
      return **place;
    };
    loop.failed_item = [place] { return place->failed_item().value_or(-1); };
    return loop;
  }

 private:
  std::shared_ptr<L> loader_;
};

// Returns the sampler specified by the script, if any.
data::AnySampler sampler_of(const json& spec, int64_t rows) {
  const std::string kind = spec.value("sampler", "");
  const uint64_t seed = spec.value("seed", 0);
  if (kind == "random") return data::RandomSampler(rows, seed);
  if (kind == "weighted") {
    const auto weights = torch::arange(1, rows + 1, torch::kDouble);
    const bool replacement = spec.value("replacement", true);
    return data::WeightedRandomSampler(weights, spec.value("samples", rows),
                                       {.replacement = replacement, .seed = seed});
  }
  if (kind == "distributed") {
    return data::DistributedSampler(rows, sconce::distributed::ProcessGroup(),
                                    {.num_replicas = 2,
                                     .rank = spec.value("rank", 0),
                                     .shuffle = spec.value("shuffle", false),
                                     .seed = seed});
  }
  return {};
}

template <class L>
std::shared_ptr<AnyLoader> with_noise(const json& spec, L loader) {
  if (!spec.value("noise", false)) return std::make_shared<LoaderOf<L>>(std::move(loader));
  using Noisy = data::TransformedBatches<L, Noise>;
  Noisy noisy(std::move(loader), Noise(), {.seed = spec.value("noise_seed", uint64_t{0})});
  return std::make_shared<LoaderOf<Noisy>>(std::move(noisy));
}

}  // namespace

std::shared_ptr<AnyLoader> make_loader(const json& spec, const Dataset& rows) {
  const int64_t batch_size = spec.at("batch");
  const bool drop_last = spec.value("drop_last", false);
  const bool shuffle = !spec.contains("sampler") && spec.value("shuffle", false);
  const uint64_t seed = spec.value("seed", 0);
  const auto sampler = sampler_of(spec, rows.data.size(0));
  if (spec.contains("workers")) {
    Source source(rows, spec.value("bad", std::set<int64_t>()), spec.value("by_torch", false));
    return with_noise(spec, data::DataLoader<Source>(
                                std::move(source), {.batch_size = batch_size,
                                                    .shuffle = shuffle,
                                                    .sampler = sampler,
                                                    .num_workers = spec.at("workers"),
                                                    .drop_last = drop_last,
                                                    .seed = seed,
                                                    .prefetch_factor = spec.value("prefetch", 2)}));
  }
  return with_noise(spec, data::Batches(rows, {.batch_size = batch_size,
                                               .shuffle = shuffle,
                                               .sampler = sampler,
                                               .drop_last = drop_last,
                                               .seed = seed}));
}

}  // namespace trainer_scripts
