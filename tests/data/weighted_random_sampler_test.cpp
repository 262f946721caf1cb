#include "sconce/data/weighted_random_sampler.hpp"

#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::WeightedRandomSampler;
using sconce::data::WeightedRandomSamplerOptions;

static_assert(sconce::data::Sampler<WeightedRandomSampler>);

namespace {

// The same weights as in reference/weighted_random_sampler.py.
torch::Tensor some_weights(int64_t rows) {
  return torch::arange(rows).mul(7).remainder(10);
}

std::string weights_refusal(const torch::Tensor& weights, int64_t num_samples,
                            WeightedRandomSamplerOptions options = {}) {
  return sconce::test::error_of([&] { WeightedRandomSampler(weights, num_samples, options); });
}

}  // namespace

TEST_CASE("WeightedRandomSampler draws the same rows as in Python", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "weighted_random_sampler.py", "indices");
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    std::istringstream words(line);
    int64_t rows = 0, num_samples = 0, epoch = 0;
    WeightedRandomSamplerOptions options;
    words >> rows >> num_samples >> options.replacement >> options.seed >> epoch;
    const std::vector<int64_t> expected{std::istream_iterator<int64_t>(words), {}};
    WeightedRandomSampler sampler(some_weights(rows), num_samples, options);
    sampler.set_epoch(epoch);
    INFO(line);
    REQUIRE(static_cast<int64_t>(expected.size()) == num_samples);
    CHECK(sampler.size() == num_samples);
    CHECK(sampler.dataset_size() == rows);
    CHECK(torch::equal(sampler.indices(), torch::tensor(expected)));
  }
  CHECK(compared == 30);
}

TEST_CASE(
    "WeightedRandomSampler draws new rows in each epoch and never draws a row with weight 0") {
  torch::manual_seed(3);
  const auto next = torch::rand({4});
  torch::manual_seed(3);
  WeightedRandomSampler sampler(torch::tensor({0., 1., 0., 3.}), 1000);
  const auto first = sampler.indices();
  CHECK(first.sizes() == std::vector<int64_t>{1000});
  CHECK(first.scalar_type() == torch::kLong);
  CHECK(torch::equal(sampler.indices(), first));
  CHECK(sampler.epoch() == 0);
  sampler.set_epoch(1);
  CHECK(sampler.epoch() == 1);
  CHECK_FALSE(torch::equal(sampler.indices(), first));
  const auto counts = first.bincount({}, 4);
  CHECK(counts[0].item<int64_t>() == 0);
  CHECK(counts[2].item<int64_t>() == 0);
  CHECK(std::abs(counts[3].item<double>() - 750) < 60);  // more than 4 sigma; the seed is fixed
  CHECK(torch::equal(torch::rand({4}), next));
}

TEST_CASE("WeightedRandomSampler accepts weights too small for float32") {
  const auto weights = torch::tensor({1., 3., 2.}, torch::kDouble);
  CHECK(torch::equal(WeightedRandomSampler(weights * std::ldexp(1., -200), 20).indices(),
                     WeightedRandomSampler(weights, 20).indices()));
}

TEST_CASE("WeightedRandomSampler without replacement draws each row at most once") {
  const WeightedRandomSampler sampler(some_weights(50), 45, {.replacement = false, .seed = 4});
  const auto rows = std::get<0>(torch::_unique2(sampler.indices()));
  CHECK(rows.size(0) == 45);
  CHECK(some_weights(50).index_select(0, rows).gt(0).all().item<bool>());
}

TEST_CASE("WeightedRandomSampler stores a copy of the weights") {
  auto weights = torch::ones({4}, torch::kDouble);
  const WeightedRandomSampler sampler(weights, 20);
  const auto rows = sampler.indices();
  weights.zero_();
  CHECK(torch::equal(sampler.indices(), rows));
}

TEST_CASE("Batches with a WeightedRandomSampler returns the drawn rows in order") {
  const WeightedRandomSampler sampler(some_weights(30), 7, {.seed = 2});
  const sconce::data::Dataset dataset{torch::arange(30), torch::arange(30)};
  std::vector<torch::Tensor> rows;
  for (auto [data, target] :
       sconce::data::Batches(dataset, {.batch_size = 3, .sampler = sampler})) {
    CHECK(torch::equal(data, target));
    rows.push_back(target);
  }
  CHECK(rows.size() == 3);
  CHECK(torch::equal(torch::cat(rows), sampler.indices()));
}

TEST_CASE("WeightedRandomSampler rejects invalid weights and sample counts") {
  const std::string name = "sconce::data::WeightedRandomSampler: expected ";
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto infinity = std::numeric_limits<double>::infinity();
  CHECK(weights_refusal({}, 1) == name + "weights, got an undefined tensor");
  CHECK(weights_refusal(torch::ones({2, 2}), 1) ==
        name + "weights of shape (dataset_size,), got shape [2, 2]");
  CHECK(weights_refusal(torch::ones({0}), 1) == name + "1 to 2^24 weights, got 0");
  CHECK(weights_refusal(torch::ones({1}).expand({(1 << 24) + 1}), 1) ==
        name + "1 to 2^24 weights, got 16777217");
  CHECK(weights_refusal(torch::ones({2}, torch::kComplexFloat), 1) ==
        name + "real weights, got ComplexFloat");
  CHECK(weights_refusal(torch::tensor({1., -1.}), 1) == name + "non-negative weights, got -1");
  CHECK_THAT(weights_refusal(torch::tensor({1., nan}), 1),
             ContainsSubstring("non-negative weights, got") && ContainsSubstring("nan"));
  CHECK(weights_refusal(torch::tensor({1., infinity}), 1) ==
        name + "weights with a finite, positive sum, got inf");
  CHECK(weights_refusal(torch::zeros({3}), 1) ==
        name + "weights with a finite, positive sum, got 0");
  CHECK(weights_refusal(torch::ones({3}), 0) == name + "num_samples to be at least 1, got 0");
  CHECK(
      weights_refusal(torch::tensor({1., 0., 2.}), 3, {.replacement = false}) ==
      name +
          "num_samples to be at most 2 (the number of nonzero weights) without replacement, got 3");
  WeightedRandomSampler sampler(torch::ones({3}), 3, {.replacement = false});
  CHECK_THAT(sconce::test::error_of([&] { sampler.set_epoch(-1); }),
             ContainsSubstring("expected epoch to be at least 0, got -1"));
}
