#include "sconce/data/k_fold.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/subset.hpp"
#include "support/error_of.hpp"

TEST_CASE("k_fold returns the same folds as scikit-learn") {
  using Indices = std::vector<int64_t>;
  const auto folds = sconce::data::k_fold(7, {.n_splits = 3});
  REQUIRE(folds.size() == 3);
  CHECK(folds[0].test == Indices{0, 1, 2});
  CHECK(folds[0].train == Indices{3, 4, 5, 6});
  CHECK(folds[1].test == Indices{3, 4});
  CHECK(folds[1].train == Indices{0, 1, 2, 5, 6});
  CHECK(folds[2].test == Indices{5, 6});
  CHECK(folds[2].train == Indices{0, 1, 2, 3, 4});
  CHECK(sconce::data::k_fold(10).size() == 5);
}

TEST_CASE("with shuffle enabled, k_fold draws the folds from a generator with the given seed") {
  const auto order = torch::randperm(11, at::make_generator<at::CPUGeneratorImpl>(5), torch::kLong);
  const auto folds = sconce::data::k_fold(11, {.n_splits = 4, .shuffle = true, .random_state = 5});
  int64_t first = 0;
  for (const auto& [train, test] : folds) {
    const auto expected = std::get<0>(order.narrow(0, first, std::ssize(test)).sort());
    CHECK(torch::tensor(test).equal(expected));
    CHECK(std::is_sorted(train.begin(), train.end()));
    CHECK(std::ssize(train) + std::ssize(test) == 11);
    const auto rows = torch::arange(11);
    const sconce::data::Subset<sconce::data::Dataset> subset({rows, rows}, train);
    CHECK(subset.target.equal(torch::tensor(train)));
    std::vector<int64_t> both;
    std::merge(train.begin(), train.end(), test.begin(), test.end(), std::back_inserter(both));
    CHECK(torch::tensor(both).equal(rows));
    first += std::ssize(test);
  }
  CHECK(first == 11);
}

TEST_CASE(
    "k_fold rejects an invalid number of folds, and rejects a seed unless shuffle is enabled") {
  const auto of = [](int64_t size, sconce::data::KFoldOptions options) {
    return sconce::test::error_of([&] { sconce::data::k_fold(size, options); });
  };
  const std::string who = "sconce::data::k_fold: expected ";
  CHECK(of(4, {.n_splits = 1}) == who + "n_splits to be at least 2, got 1");
  CHECK(of(4, {}) == who + "n_splits to be at most 4 (the number of items), got 5");
  CHECK(of(9, {.random_state = 3}) ==
        who + "random_state only with shuffle, got 3 without shuffle");
}
