#include "sconce/data/concat_dataset.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/subset.hpp"
#include "support/error_of.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::data::ConcatDataset;
using sconce::data::DataLoader;
using sconce::test::error_of;

// Item i is first + i.
struct From {
  int64_t size() const { return count; }
  torch::Tensor get(int64_t i) const {
    TORCH_CHECK(first + i != 13, "no item 13");
    return torch::full({}, first + i);
  }
  int64_t first;
  int64_t count;
};

// Cannot be copied.
struct Five {
  Five() = default;
  Five(Five&&) = default;
  int64_t size() const { return 1; }
  torch::Tensor get(int64_t) const { return torch::full({}, 5); }
};

struct Draws {
  int64_t size() const { return 2; }
  torch::Tensor get(int64_t, at::Generator generator) const {
    return torch::randint(1 << 30, {}, generator, torch::kLong);
  }
};

template <class T>
std::vector<int64_t> numbers_of(const T& loader) {
  std::vector<int64_t> all;
  for (const torch::Tensor& batch : loader) {
    for (int64_t i = 0; i < batch.size(0); ++i) all.push_back(batch[i].item<int64_t>());
  }
  return all;
}

}  // namespace

TEST_CASE("ConcatDataset returns items from all sources in order for any number of workers") {
  const ConcatDataset all(From{0, 2}, Five(), From{20, 0}, sconce::data::Subset(From{0, 9}, {8}));
  CHECK(all.size() == 4);
  CHECK(all.cumulative_sizes() == std::vector<int64_t>{2, 3, 3, 4});  // as in Python
  CHECK(all.get(1).item<int64_t>() == 1);
  for (const int workers : {0, 2}) {
    CHECK(numbers_of(DataLoader(all, {.batch_size = 3, .num_workers = workers})) ==
          std::vector<int64_t>{0, 1, 5, 8});
  }
}

TEST_CASE("ConcatDataset accepts a vector of any number of sources") {
  const std::vector<From> two = {{0, 2}, {10, 3}};
  const ConcatDataset all(two);
  CHECK(numbers_of(DataLoader(all)) == std::vector<int64_t>{0, 1, 10, 11, 12});
  CHECK(numbers_of(DataLoader(ConcatDataset(all, From{7, 1}))) ==
        std::vector<int64_t>{0, 1, 10, 11, 12, 7});
  const auto copy = all;
  CHECK(copy.size() == 5);
  std::vector<Five> movable(2);
  CHECK(ConcatDataset(std::move(movable)).size() == 2);
}

TEST_CASE(
    "if a source draws random numbers, ConcatDataset assigns each item a separate generator") {
  const ConcatDataset all(From{0, 1}, Draws());
  const auto got = numbers_of(DataLoader(all, {.batch_size = 2, .seed = 3}));
  CHECK(got == numbers_of(DataLoader(all, {.batch_size = 3, .num_workers = 2, .seed = 3})));
  CHECK(got != numbers_of(DataLoader(all, {.batch_size = 3, .seed = 4})));
  CHECK(got[0] == 0);
  CHECK(got[1] != got[2]);
  CHECK(ConcatDataset(std::vector<Draws>(3)).size() == 6);
}

TEST_CASE("ConcatDataset reports the item that throws and rejects invalid sources and indices") {
  const ConcatDataset all(From{0, 2}, From{10, 4});
  const DataLoader loader(all);
  CHECK_THAT(error_of([&] { numbers_of(loader); }),
             ContainsSubstring("no item 13") && ContainsSubstring("in item 5"));
  CHECK(loader.failed_item() == 5);
  const std::string who = "sconce::data::ConcatDataset";
  CHECK(error_of([] { ConcatDataset(std::vector<From>()); }) ==
        who + ": expected at least 1 source, got none");
  CHECK(error_of([] { ConcatDataset(Five(), From{0, -1}); }) ==
        who + ": expected sources with non-negative sizes, got -1 in source 1");
  const auto range = who + "::get: expected a non-negative index below 6, got ";
  CHECK(error_of([&] { all.get(6); }) == range + "6");
  CHECK(error_of([&] { all.get(-1); }) == range + "-1");
}
