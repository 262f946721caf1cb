#include "sconce/data/sampler.hpp"

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::AnySampler;
using sconce::data::RandomSampler;

// The test "Batches orders rows like Python's DistributedSampler with one replica" compares the row
// orders with Python.
TEST_CASE("RandomSampler returns all rows in a new random order in each epoch") {
  RandomSampler sampler(20, 3);
  CHECK(sampler.dataset_size() == 20);
  CHECK(sampler.size() == 20);
  const auto first = sampler.indices();
  CHECK(torch::equal(std::get<0>(first.sort()), torch::arange(20)));
  CHECK(torch::equal(sampler.indices(), first));
  sampler.set_epoch(1);
  CHECK_FALSE(torch::equal(sampler.indices(), first));
  CHECK(torch::equal(sampler.indices(), RandomSampler(20, 4).indices()));  // seed + epoch
  CHECK(RandomSampler(0).indices().numel() == 0);
}

TEST_CASE("AnySampler contains a copy of a sampler or is empty") {
  RandomSampler sampler(9, 2);
  sampler.set_epoch(4);
  const AnySampler any = sampler;
  const auto own = sampler.indices();
  sampler.set_epoch(5);
  CHECK(any.size() == 9);
  CHECK(any.dataset_size() == 9);
  CHECK(torch::equal(any.indices(any.epoch()), own));
  CHECK(torch::equal(any.indices(5), sampler.indices()));
  CHECK(torch::equal(any.indices(any.epoch()), own));
  CHECK(any.epoch() == 4);
  CHECK_FALSE(any.requires_set_epoch());
  CHECK(any);
  CHECK_FALSE(AnySampler());
}

TEST_CASE("RandomSampler rejects negative sizes and epochs") {
  CHECK_THROWS_WITH(RandomSampler(-1), ContainsSubstring("dataset_size to be at least 0, got -1"));
  CHECK_THROWS_WITH(RandomSampler(3).set_epoch(-2), ContainsSubstring("at least 0, got -2"));
}
