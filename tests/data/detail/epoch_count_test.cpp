#include "sconce/data/detail/epoch_count.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::AnySampler;
using sconce::data::RandomSampler;
using sconce::data::detail::EpochCount;

namespace {

struct Keeping : RandomSampler {
  Keeping() : RandomSampler(3) {}
  bool requires_set_epoch() const { return true; }
};

}  // namespace

TEST_CASE("copies of an epoch count share the same sequence of epochs, even after a move") {
  const auto first = std::make_unique<EpochCount>("Who");
  const EpochCount copy = *first;
  CHECK(first->take() == 0);
  CHECK(copy.take() == 1);
  const EpochCount count = std::move(*first);
  CHECK(count.take() == 2);
  CHECK(first->take() == 3);
  count.set(7);
  CHECK(copy.take() == 7);
  CHECK(count.take() == 8);
  CHECK(EpochCount("Who").take() == 0);
}

TEST_CASE("an epoch count starts at its sampler's epoch") {
  RandomSampler sampler(3);
  sampler.set_epoch(4);
  const EpochCount count("Who", AnySampler(sampler));
  CHECK(count.take() == 4);
  CHECK(count.take() == 5);
}

TEST_CASE("threads that share an epoch count take each epoch exactly once") {
  const EpochCount count("Who");
  std::vector<std::vector<int64_t>> taken(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : taken) {
    threads.emplace_back([&of_thread, count] {
      for (int i = 0; i < 1000; ++i) of_thread.push_back(count.take());
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const auto& of_thread : taken) {
    CHECK(std::is_sorted(of_thread.begin(), of_thread.end()));
    all.insert(all.end(), of_thread.begin(), of_thread.end());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == 4000);
  for (size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == static_cast<int64_t>(i));
}

TEST_CASE(
    "with a sampler that requires set_epoch, an epoch count repeats the epoch and warns once if "
    "set_epoch is not called") {
  const sconce::test::Warnings warnings;
  const EpochCount count("Who", AnySampler(Keeping()));
  const EpochCount copy = count;
  CHECK(count.take() == 0);
  count.set(1);
  CHECK(count.take() == 1);
  CHECK(warnings.messages().empty());
  CHECK(copy.take() == 1);
  CHECK(count.take() == 1);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             ContainsSubstring("Who::begin: expected a call to set_epoch before each epoch") &&
                 ContainsSubstring("repeats the order of epoch 1."));
}

TEST_CASE("an epoch count rejects negative epochs, and the error names the loader") {
  const EpochCount count("Who");
  CHECK(count.named(3) == 3);
  CHECK_THROWS_WITH(count.set(-1),
                    ContainsSubstring("Who::set_epoch: expected epoch to be at least 0, got -1"));
  CHECK_THROWS_WITH(count.named(-2),
                    ContainsSubstring("Who::begin: expected epoch to be at least 0, got -2"));
  CHECK(count.take() == 0);
}
