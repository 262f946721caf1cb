// Tests the thread-safe operations on batch sources, samplers, images, and transforms.

#include <memory>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/concat_dataset.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/data/k_fold.hpp"
#include "sconce/data/random_split.hpp"
#include "sconce/data/stream_loader.hpp"
#include "sconce/data/subset.hpp"
#include "sconce/data/tensor_batches.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/data/weighted_random_sampler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/vision/image_folder.hpp"
#include "sconce/vision/transforms.hpp"
#include "support/at_once.hpp"
#include "support/same_bytes.hpp"
#include "support/temp_dir.hpp"

using sconce::test::check_at_once;
using sconce::test::same_bytes;
using sconce::test::Use;

namespace {

namespace data = sconce::data;

constexpr int64_t row_count = 8;

torch::Tensor numbers() {
  return torch::arange(row_count, torch::kFloat);
}

struct NumberSource {
  torch::Tensor numbers = torch::arange(row_count, torch::kFloat);
  int64_t size() const { return row_count; }
  torch::Tensor get(int64_t index) const { return numbers[index].clone(); }
};

float sum_of(const torch::Tensor& batch) {
  return batch.sum().item<float>();
}
float sum_of(const data::Dataset& batch) {
  return batch.data.sum().item<float>();
}

// Returns whether this thread receives a complete epoch, in which every number occurs exactly once.
// Any epoch number is allowed.
template <class Source>
bool has_whole_epoch(const Source& source) {
  float sum = 0;
  for (const auto& batch : source) sum += sum_of(batch);
  return sum == row_count * (row_count - 1) / 2.F;
}

template <class Source>
Use looping(const char* what, Source source) {
  const auto shared = std::make_shared<Source>(std::move(source));
  return {what, [shared] {
            shared->set_epoch(3);
            return has_whole_epoch(std::as_const(*shared));
          }};
}

template <class Sampler>
Use drawing(const char* what, Sampler sampler) {
  const auto expected = sampler.indices();
  return {what, [sampler, expected] {
            return same_bytes(sampler.indices(), expected) && sampler.size() == row_count &&
                   sampler.dataset_size() == row_count && sampler.epoch() == 0;
          }};
}

}  // namespace

TEST_CASE("four threads concurrently loop over the same batch source and set its epoch") {
  const data::BatchesOptions shuffled = {.batch_size = 3, .shuffle = true};
  const data::DataLoaderOptions by_workers = {.batch_size = 3, .shuffle = true, .num_workers = 2};
  const data::Batches batches(data::Dataset{numbers(), numbers()}, shuffled);
  const auto stream =
      data::make_stream(std::views::iota(0, int{row_count}) |
                        std::views::transform([](int i) { return torch::tensor(float(i)); }));
  check_at_once({
      looping("Batches", batches),
      looping("TensorBatches", data::TensorBatches(numbers(), shuffled)),
      looping("DataLoader", data::DataLoader(NumberSource(), by_workers)),
      looping("StreamLoader", data::StreamLoader(stream, {.batch_size = 3, .num_workers = 2})),
      looping("TransformedBatches",
              data::TransformedBatches(batches,
                                       [](data::Dataset batch, const at::Generator& of) {
                                         return data::Dataset{batch.data + 0 * torch::rand({1}, of),
                                                              batch.target};
                                       })),
  });
}

TEST_CASE("four threads loop over the same AnyBatches concurrently") {
  const sconce::AnyBatches batches(
      data::Batches(data::Dataset{numbers(), numbers()}, {.batch_size = 3, .shuffle = true}));
  check_at_once({{"AnyBatches", [&] {
                    const auto next = batches.begin();
                    float sum = 0;
                    for (int64_t i = 0; i < batches.size(); ++i) {
                      sum += sum_of(next().as<data::Dataset>());
                    }
                    return sum == row_count * (row_count - 1) / 2.F;
                  }}});
}

TEST_CASE("four threads load and save the position of the same StreamLoader concurrently") {
  const auto stream = data::make_stream(std::vector<torch::Tensor>(6, torch::ones({})));
  data::StreamLoader loader(stream, {.batch_size = 2});
  const auto begun = loader.state_dict();
  check_at_once({{"StreamLoader", [&] {
                    loader.load_state_dict(begun);
                    return std::as_const(loader).state_dict().isGenericDict();
                  }}});
}

TEST_CASE("four threads draw from the same sampler concurrently") {
  check_at_once({
      drawing("RandomSampler", data::RandomSampler(row_count)),
      drawing("DistributedSampler",
              data::DistributedSampler(row_count, sconce::distributed::ProcessGroup())),
      drawing("WeightedRandomSampler",
              data::WeightedRandomSampler(torch::ones({row_count}), row_count)),
  });
  const data::AnySampler any(data::RandomSampler{row_count});
  check_at_once({{"AnySampler", [&] { return any.indices(1).numel() == any.size(); }}});
}

TEST_CASE("four threads read items from the same source concurrently") {
  const data::Subset<NumberSource> subset(NumberSource(), {5, 1});
  const data::ConcatDataset joined{NumberSource(), NumberSource()};
  const data::Subset<data::Dataset> rows(data::Dataset{numbers(), numbers()}, {5, 1});
  const data::SplitLengths lengths{0.5, 0.5};
  const std::vector<torch::Tensor> items = {numbers(), numbers()};
  check_at_once({
      {"Subset",
       [&] {
         return subset.get(0).item<float>() == 5 && subset.size() == 2 &&
                subset.indices()[1] == 1 && subset.dataset().size() == row_count;
       }},
      {"Subset of a Dataset", [&] { return rows.size() == 2 && rows.data.numel() == 2; }},
      {"ConcatDataset",
       [&] {
         return joined.get(row_count + 2).item<float>() == 2 && joined.size() == 2 * row_count &&
                joined.cumulative_sizes().size() == 2;
       }},
      {"SplitLengths", [&] { return lengths.of(row_count).size() == 2; }},
      {"Stack", [&, stack = data::Stack()] { return stack(items).dim() == 2; }},
      {"PadSequence", [&, pad = data::PadSequence()] { return pad(items).dim() == 2; }},
  });
}

TEST_CASE("four threads call the same transform concurrently, each with its own generator") {
  namespace transforms = sconce::vision::transforms;
  const transforms::Compose all(
      transforms::RandomCrop({6, 6}, 1), transforms::RandomHorizontalFlip(),
      transforms::CenterCrop({5, 5}), transforms::RandomResizedCrop({4, 4}),
      transforms::ColorJitter({.brightness = 0.1, .hue = 0.1}), transforms::Resize({3, 3}),
      transforms::Normalize({0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}));
  const auto images = torch::linspace(0, 1, 2 * 3 * 6 * 6).view({2, 3, 6, 6});
  const auto transformed = [&] {
    return all(images, at::make_generator<at::CPUGeneratorImpl>(uint64_t{1}));
  };
  const auto expected = transformed();
  check_at_once({{"Compose", [&] { return same_bytes(transformed(), expected); }}});
}

TEST_CASE("four threads read images from the same ImageFolder concurrently") {
  const sconce::test::TempDir folder;
  std::filesystem::create_directory(folder.path() / "cat");
  const auto file = folder.path() / "cat" / "1.png";
  try {
    sconce::vision::write_png(torch::zeros({1, 4, 4}, torch::kByte), file);
  } catch (const c10::NotImplementedError&) {
    SKIP("sconce was built without libpng");
  }
  const sconce::vision::ImageFolder pictures(folder.path());
  check_at_once({{"ImageFolder", [&] {
                    return pictures.get(0).data.size(0) == 3 && pictures.size() == 1 &&
                           pictures.classes().front() == "cat" &&
                           pictures.samples().front().path == file &&
                           pictures.targets().numel() == 1;
                  }}});
}
