#include "sconce/data/transformed_batches.hpp"

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/transforms.hpp"
#include "sconce/training/batch.hpp"

using sconce::data::Batches;
using sconce::data::Dataset;
using sconce::data::TransformedBatches;

namespace {

// Row i of both is i.
Dataset numbered(int64_t rows) {
  return {torch::arange(rows).to(torch::kFloat), torch::arange(rows)};
}

Dataset doubled(const Dataset& batch) {
  return {batch.data * 2, batch.target};
}

// The batch with a random number added to each row.
Dataset noisy(Dataset batch, const at::Generator& generator) {
  return {batch.data + torch::rand({batch.data.size(0)}, generator), batch.target};
}

template <class Source>
std::vector<torch::Tensor> data_of(const Source& source, int64_t first_batch = 0) {
  std::vector<torch::Tensor> result;
  for (auto place = source.begin(first_batch); place != source.end(); ++place) {
    result.push_back((*place).data);
  }
  return result;
}

using Doubled = TransformedBatches<Batches, Dataset (*)(const Dataset&)>;
static_assert(sconce::BatchSource<Doubled>);
static_assert(std::input_iterator<Doubled::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, Doubled::Iterator>);

}  // namespace

TEST_CASE("TransformedBatches gives what the function makes of each batch") {
  const TransformedBatches batches(Batches(numbered(7), {.batch_size = 3}), doubled);
  CHECK(batches.size() == 3);
  int64_t first = 0;
  for (auto [data, target] : batches) {
    CHECK(torch::equal(data, target * 2));
    CHECK(target[0].item<int64_t>() == first);
    first += 3;
  }
  CHECK(first == 9);
}

TEST_CASE("TransformedBatches draws the same for one seed, epoch and batch, else others") {
  const Batches source(numbered(6), {.batch_size = 3});
  TransformedBatches batches(source, noisy);
  const auto first = data_of(batches);
  CHECK_FALSE(torch::equal(first[0], first[1] - 3));
  CHECK(torch::equal(data_of(batches)[1], first[1]));
  CHECK(torch::equal(data_of(batches, 1).at(0), first[1]));
  CHECK(data_of(batches, 2).empty());
  batches.set_epoch(1);
  CHECK_FALSE(torch::equal(data_of(batches)[0], first[0]));
  batches.set_epoch(0);
  CHECK(torch::equal(data_of(batches)[0], first[0]));
  CHECK_FALSE(torch::equal(data_of(TransformedBatches(source, noisy, {.seed = 1}))[0], first[0]));
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(sconce::data::mix_seeds(0, 0, 1));
  CHECK(torch::equal(noisy({torch::arange(3.f, 6.f), {}}, generator).data, first[1]));
}

TEST_CASE("TransformedBatches passes the epoch on, and a loop that runs keeps its own") {
  Batches source(numbered(20), {.batch_size = 4, .shuffle = true});
  TransformedBatches batches(source, noisy);
  source.set_epoch(2);
  batches.set_epoch(2);
  const auto expected = data_of(batches);
  auto plain = source.begin();
  auto place = batches.begin();
  batches.set_epoch(9);
  for (const auto& data : expected) {
    CHECK(torch::equal((*place).target, (*plain).target));
    CHECK(torch::equal((*place).data, data));
    CHECK(torch::equal((*place).data, data));  // made twice
    ++place;
    ++plain;
  }
  CHECK(place == batches.end());
}

// Batches that are no tensors and have no epochs, from any batch on.
struct Numbers {
  struct Place {
    int64_t number;
    int64_t operator*() const { return number; }
    Place& operator++() {
      number += 1;
      return *this;
    }
  };
  int64_t size() const { return 5; }
  Place begin(int64_t first_batch = 0) const {
    *begun_at = first_batch;
    return {first_batch};
  }
  std::shared_ptr<int64_t> begun_at = std::make_shared<int64_t>(0);
};

TEST_CASE("TransformedBatches takes a source of any batches and begins it where it is told") {
  const Numbers numbers;
  TransformedBatches texts(numbers, [](auto number) { return std::to_string(number); });
  texts.set_epoch(3);
  std::string all;
  for (const auto& text : texts) all += text;
  CHECK(all == "01234");
  CHECK(*texts.begin(3) == "3");
  CHECK(*numbers.begun_at == 3);
}

TEST_CASE("the Trainer's loader takes transformed batches, from any batch on") {
  const sconce::data::Compose augment(sconce::data::RandomCrop({2, 2}, 1),
                                      sconce::data::RandomHorizontalFlip());
  const Batches source({torch::rand({8, 1, 4, 4}), torch::arange(8)},
                       {.batch_size = 3, .shuffle = true, .seed = 1});
  TransformedBatches batches(source, [augment](const Dataset& batch, at::Generator generator) {
    return Dataset{augment(batch.data, generator), batch.target};
  });
  sconce::BatchLoader loader(batches);
  CHECK(loader.size() == 3);
  loader.set_epoch(4);
  batches.set_epoch(4);
  const auto expected = data_of(batches);
  auto next = loader.begin(1);
  CHECK(torch::equal(next().as<Dataset>().data, expected.at(1)));
  CHECK(torch::equal(next().as<Dataset>().data, expected.at(2)));
}
