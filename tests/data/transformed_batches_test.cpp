#include "sconce/data/transformed_batches.hpp"

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/vision/transforms.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::Batches;
using sconce::data::Dataset;
using sconce::data::TransformedBatches;

namespace {

// Returns a dataset in which row i of both the data and the target is i.
Dataset numbered(int64_t rows) {
  return {torch::arange(rows).to(torch::kFloat), torch::arange(rows)};
}

Dataset doubled(const Dataset& batch) {
  return {batch.data * 2, batch.target};
}

// Returns the batch with a random number added to each row.
Dataset noisy(Dataset batch, const at::Generator& generator) {
  return {batch.data + torch::rand({batch.data.size(0)}, generator), batch.target};
}

// Returns the data for the next epoch.
template <class Source>
std::vector<torch::Tensor> data_of(const Source& source) {
  std::vector<torch::Tensor> result;
  for (const auto& batch : source) result.push_back(batch.data);
  return result;
}

// Returns the data for an epoch, starting at the given batch.
template <class Source>
std::vector<torch::Tensor> data_of(const Source& source, int64_t batch, int64_t epoch) {
  std::vector<torch::Tensor> result;
  for (auto place = source.begin(batch, epoch); place != source.end(); ++place) {
    result.push_back((*place).data);
  }
  return result;
}

using Doubled = TransformedBatches<Batches, Dataset (*)(const Dataset&)>;
static_assert(sconce::BatchSource<Doubled>);
static_assert(std::input_iterator<Doubled::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, Doubled::Iterator>);

}  // namespace

TEST_CASE("TransformedBatches applies its function to each batch") {
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

TEST_CASE(
    "a range-based for loop over a temporary TransformedBatches keeps its source and function "
    "alive") {
  const Dataset rows = numbered(7);
  std::vector<torch::Tensor> got;
  for (const auto& [data, target] : TransformedBatches(
           Batches(rows, {.batch_size = 3, .shuffle = true}),
           [kept = std::make_shared<torch::Tensor>(torch::ones({1}))](const Dataset& batch) {
             return Dataset{batch.data + *kept, batch.target};
           })) {
    CHECK(torch::equal(data, target + 1));
    got.push_back(target);
  }
  CHECK(torch::equal(std::get<0>(torch::cat(got).sort()), rows.target));
  got.clear();
  for (const auto& [data, target] : Batches(rows, {.batch_size = 3})) got.push_back(target);
  CHECK(torch::equal(torch::cat(got), rows.target));
}

TEST_CASE(
    "TransformedBatches draws the same random numbers only for the same seed, epoch, and batch") {
  const Batches source(numbered(6), {.batch_size = 3});
  TransformedBatches batches(source, noisy);
  const auto first = data_of(batches);
  CHECK_FALSE(torch::equal(first[0], first[1] - 3));
  CHECK(torch::equal(data_of(batches, 0, 0)[1], first[1]));
  CHECK(torch::equal(data_of(batches, 1, 0).at(0), first[1]));
  CHECK(data_of(batches, 2, 0).empty());
  CHECK_FALSE(torch::equal(data_of(batches)[0], first[0]));
  batches.set_epoch(0);
  CHECK(torch::equal(data_of(batches)[0], first[0]));
  CHECK_FALSE(torch::equal(data_of(TransformedBatches(source, noisy, {.seed = 1}))[0], first[0]));
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(sconce::data::mix_seeds(0, 0, 1));
  CHECK(torch::equal(noisy({torch::arange(3.f, 6.f), {}}, generator).data, first[1]));
}

TEST_CASE("TransformedBatches passes set_epoch to its source, and a running loop keeps its epoch") {
  const Batches source(numbered(20), {.batch_size = 4, .shuffle = true});
  TransformedBatches batches(source, noisy);
  const auto expected = data_of(batches, 0, 2);
  auto plain = source.begin(0, 2);
  batches.set_epoch(2);
  auto place = batches.begin();
  CHECK(place.epoch() == 2);
  batches.set_epoch(9);
  for (const auto& data : expected) {
    CHECK(torch::equal((*place).target, (*plain).target));
    CHECK(torch::equal((*place).data, data));
    CHECK((*place).data.is_same((*place).data));  // transformed only once
    ++place;
    ++plain;
  }
  CHECK(place == batches.end());
  CHECK(source.begin().epoch() == 9);  // `source` has a separate epoch count
}

TEST_CASE("TransformedBatches follows its source's epochs and uses separate generators") {
  const Batches source(numbered(20), {.batch_size = 4, .shuffle = true});
  const TransformedBatches inner(source, noisy, {.seed = 1});
  const TransformedBatches outer(inner, noisy, {.seed = 2});
  const auto check = [&](int64_t epoch) {
    auto plain = source.begin(0, epoch);
    auto place = outer.begin();
    CHECK(place.epoch() == epoch);
    for (uint64_t i = 0; place != outer.end(); ++place, ++plain, ++i) {
      auto expected = *plain;
      for (const uint64_t seed : {1, 2}) {
        const auto mixed = sconce::data::mix_seeds(seed, static_cast<uint64_t>(epoch), i);
        expected = noisy(expected, at::make_generator<at::CPUGeneratorImpl>(mixed));
      }
      CHECK(torch::equal((*place).data, expected.data));
      CHECK(torch::equal((*place).target, expected.target));
    }
  };
  check(0);
  check(1);
  CHECK(source.begin().epoch() == 2);
  check(3);
}

TEST_CASE(
    "TransformedBatches over a DistributedSampler repeats its random numbers until set_epoch is "
    "called") {
  const sconce::test::Warnings warnings;
  const auto group = sconce::distributed::ProcessGroup::init();
  const sconce::data::DistributedSampler sampler(20, group);
  TransformedBatches batches(Batches(numbered(20), {.batch_size = 4, .sampler = sampler}), noisy);
  const auto first = data_of(batches), again = data_of(batches);
  for (size_t i = 0; i < first.size(); ++i) CHECK(torch::equal(first[i], again[i]));
  REQUIRE(warnings.messages().size() == 1);
  batches.set_epoch(1);
  const auto expected = data_of(batches, 0, 1), got = data_of(batches);
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK(torch::equal(got[i], expected[i]));
    CHECK_FALSE(torch::equal(got[i], first[i]));
  }
  CHECK(warnings.messages().size() == 1);
}

// A batch source whose batches are not tensors. The source has no epochs and can start at any
// batch.
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

TEST_CASE("TransformedBatches accepts any batch source and starts it at the requested batch") {
  const Numbers numbers;
  TransformedBatches texts(numbers, [](auto number) { return std::to_string(number); });
  texts.set_epoch(3);
  std::string all;
  for (const auto& text : texts) all += text;
  CHECK(all == "01234");
  CHECK(*texts.begin(3, 0) == "3");
  CHECK(*numbers.begun_at == 3);
  CHECK_THROWS_WITH(texts.begin(0, -1),
                    ContainsSubstring("TransformedBatches::begin: expected epoch"));
  CHECK_THROWS_WITH(texts.set_epoch(-1), ContainsSubstring("epoch to be at least 0, got -1"));
}

TEST_CASE("TransformedBatches over a source without epochs uses new generators in each loop") {
  const Numbers numbers;
  const TransformedBatches drawn(numbers, [](int64_t, const at::Generator& generator) {
    return torch::rand({1}, generator).item<float>();
  });
  const auto copy = drawn;
  const auto of_epoch = [&](int64_t epoch) { return *drawn.begin(0, epoch); };
  CHECK(*drawn.begin() == of_epoch(0));
  CHECK(*copy.begin() == of_epoch(1));
  CHECK(*drawn.begin() == of_epoch(2));
  CHECK(of_epoch(0) != of_epoch(1));
}

// A custom source whose epoch changes only through set_epoch.
struct Shifted {
  int64_t size() const { return 3; }
  void set_epoch(int64_t epoch) { numbers = {10 * epoch, 10 * epoch + 1, 10 * epoch + 2}; }
  auto begin() const { return numbers.begin(); }
  std::array<int64_t, 3> numbers = {0, 1, 2};
};

TEST_CASE(
    "if a source supports only set_epoch, TransformedBatches starts an epoch in a copy of the "
    "source") {
  TransformedBatches doubles(Shifted(), [](int64_t number) { return 2 * number; });
  auto place = doubles.begin(1, 4);
  CHECK(*place == 2 * 41);
  CHECK(*++place == 2 * 42);
  CHECK(*doubles.begin() == 0);
  doubles.set_epoch(1);
  CHECK(*doubles.begin() == 2 * 10);
  CHECK(*place == 2 * 42);
}

TEST_CASE("AnyBatches accepts TransformedBatches and starts them at any batch") {
  const sconce::vision::transforms::Compose augment(
      sconce::vision::transforms::RandomCrop({2, 2}, 1),
      sconce::vision::transforms::RandomHorizontalFlip());
  const Batches source({torch::rand({8, 1, 4, 4}), torch::arange(8)},
                       {.batch_size = 3, .shuffle = true, .seed = 1});
  const TransformedBatches batches(source,
                                   [augment](const Dataset& batch, at::Generator generator) {
                                     return Dataset{augment(batch.data, generator), batch.target};
                                   });
  sconce::AnyBatches loader(batches);
  CHECK(loader.size() == 3);
  const auto expected = data_of(batches, 0, 4);
  auto next = loader.begin(1, 4);
  CHECK(torch::equal(next().as<Dataset>().data, expected.at(1)));
  CHECK(torch::equal(next().as<Dataset>().data, expected.at(2)));
}

namespace {

// A ten-item dataset. Reading item 7 fails.
struct BadSeventh {
  int64_t size() const { return 10; }
  torch::Tensor get(int64_t index) const {
    if (index == 7) throw std::runtime_error("bad");
    return torch::tensor(index);
  }
};

}  // namespace

TEST_CASE("a loop over a transformed DataLoader reports the failed item and then ends") {
  const int workers = GENERATE(0, 3);
  const TransformedBatches batches(
      sconce::data::DataLoader(BadSeventh(), {.batch_size = 2, .num_workers = workers}),
      [](const torch::Tensor& batch) { return batch + 1; });
  auto place = batches.begin();
  for (int64_t i = 0; i < 3; ++i, ++place) CHECK((*place)[0].item<int64_t>() == 2 * i + 1);
  CHECK(place.failed_item() == std::nullopt);
  CHECK_FALSE(place == std::default_sentinel);
  CHECK_THROWS_AS(*place, std::runtime_error);
  CHECK(place.failed_item() == 7);
  CHECK(place == std::default_sentinel);
  CHECK_THROWS_AS(++place, std::runtime_error);
}

TEST_CASE(
    "a loop over TransformedBatches can outlive the TransformedBatches object and ends if the "
    "function throws") {
  const auto begin = [] {
    const auto no_fours = [](const Dataset& batch) -> Dataset {
      TORCH_CHECK(batch.target.ne(4).all().item<bool>(), "a four");
      return doubled(batch);
    };
    return TransformedBatches(Batches(numbered(8), {.batch_size = 2}), no_fours).begin();
  };
  auto place = begin();
  CHECK(torch::equal((*place).data, torch::tensor({0.f, 2.f})));
  ++place;
  ++place;
  CHECK_FALSE(place == std::default_sentinel);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK_THROWS_WITH(*place, ContainsSubstring("a four"));
    CHECK(place == std::default_sentinel);
  }
  CHECK(place.failed_item() == std::nullopt);
}
