#include "sconce/data/random_split.hpp"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"

namespace {

using sconce::data::Dataset;
using sconce::data::random_split;
using sconce::data::SplitLengths;
using sconce::data::Subset;
using sconce::test::error_of;

struct UpTo {
  int64_t size() const { return count; }
  torch::Tensor get(int64_t i) const { return torch::full({}, i); }
  int64_t count = 10;
};

struct UpToOfTorch : torch::data::Dataset<UpToOfTorch, torch::data::TensorExample> {
  torch::data::TensorExample get(size_t i) override {
    return torch::full({}, static_cast<int64_t>(i));
  }
  std::optional<size_t> size() const override { return count; }
  std::optional<size_t> count = 10;
};

at::Generator generator_of(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::string refusal(const SplitLengths& lengths, int64_t size = 10) {
  return error_of([&] { random_split(UpTo{size}, lengths); });
}

template <class T>
std::vector<T> read_list(std::istream& words) {
  size_t count = 0;
  words >> count;
  std::vector<T> list(count);
  for (auto& value : list) words >> value;
  return list;
}

}  // namespace

TEST_CASE("random_split returns the same items as in Python for the same generator", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "random_split.py", "parts");
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    std::istringstream words(line);
    int64_t size = 0;
    uint64_t seed = 0;
    std::string kind;
    words >> size >> seed >> kind;
    const auto lengths = kind == "fractions" ? SplitLengths(read_list<double>(words))
                                             : SplitLengths(read_list<int64_t>(words));
    std::ostringstream got;
    auto generator = generator_of(seed);
    torch::manual_seed(seed);
    const auto parts = compared % 2 == 0 ? random_split(UpTo{size}, lengths, generator)
                                         : random_split(UpTo{size}, lengths);
    for (const auto& part : parts) {
      for (const int64_t index : part.indices()) got << ' ' << index;
      got << " |";
    }
    if (compared % 2 != 0) generator = at::detail::getDefaultCPUGenerator();
    got << ' ' << torch::randint(1000, {1}, generator).item<int64_t>();  // checks the draw count
    std::string expected;
    std::getline(words, expected);
    INFO(line);
    CHECK(got.str() == expected);
  }
  CHECK(compared == 32);
}

TEST_CASE("random_split's parts share the source and together contain every item exactly once") {
  const auto parts = random_split(UpTo(), {int64_t{7}, 3}, generator_of(1));
  REQUIRE(parts.size() == 2);
  CHECK(&parts[0].dataset() == &parts[1].dataset());
  std::vector<torch::Tensor> all;
  for (const auto& part : parts) {
    for (const auto& batch : sconce::data::DataLoader(part, {.batch_size = 4}))
      all.push_back(batch);
  }
  CHECK(all.size() == 3);
  CHECK(std::get<0>(torch::cat(all).sort()).equal(torch::arange(10)));
}

TEST_CASE("random_split splits tensor pairs and LibTorch datasets like any other source") {
  const auto parts = random_split(UpTo(), {0.75f, 0.25f}, generator_of(3));
  const auto rows = torch::arange(10);
  const auto of_tensors = random_split(Dataset{rows, -rows}, {0.75, 0.25}, generator_of(3));
  const auto of_torch = random_split(UpToOfTorch(), {8, 2}, generator_of(3));
  for (const size_t i : {0, 1}) {
    CHECK(of_tensors[i].data.equal(torch::tensor(parts[i].indices())));
    CHECK(of_tensors[i].target.equal(-of_tensors[i].data));
    CHECK(of_torch[i].indices() == parts[i].indices());
  }
  const sconce::data::Batches batches(of_tensors[0], {.batch_size = 5});
  CHECK(batches.size() == 2);
  const sconce::data::DataLoader loader(of_torch[1], {.batch_size = 2});
  CHECK((*loader.begin()).data[1].item<int64_t>() == parts[1].indices()[1]);
}

TEST_CASE("random_split splits a tensor pair into tensor pairs that can be split again") {
  const auto rows = torch::arange(10);
  const auto parts = random_split(Dataset{rows, -rows}, {8, 2}, generator_of(3));
  const std::vector<Subset<Dataset>> halves = random_split(parts[0], {0.5, 0.5}, generator_of(4));
  const auto expected = random_split(UpTo{8}, {0.5, 0.5}, generator_of(4));
  for (const size_t i : {0, 1}) {
    CHECK(halves[i].indices() == expected[i].indices());
    CHECK(halves[i].data.equal(parts[0].data.index({torch::tensor(halves[i].indices())})));
    CHECK(halves[i].target.equal(-halves[i].data));
  }
  CHECK(random_split(Subset(parts[0], {0, 1, 2, 3}), {3, 1})[1].size() == 1);
}

TEST_CASE("random_split rejects mismatched lengths and empty parts before drawing random numbers") {
  const std::string who = "sconce::data::random_split: expected ";
  const auto lengths_of_10 = who + "lengths from 1 to 10 (the number of items), got ";
  const auto adding_to_10 = who + "lengths that add up to 10 (the number of items), got ";
  torch::manual_seed(5);
  CHECK(refusal({7, 2}) == adding_to_10 + "[7, 2] with a sum of 9");
  CHECK(refusal({7, 4}) == adding_to_10 + "[7, 4] with a sum of 11");
  CHECK(refusal({10, 0}) == lengths_of_10 + "[10, 0]");
  CHECK(refusal({12, -2}) == lengths_of_10 + "[12, -2]");
  const auto most = std::numeric_limits<int64_t>::max();
  CHECK(refusal({most, most}).starts_with(lengths_of_10));
  CHECK(refusal({0.7, 0.2}) ==
        who + "fractions that add up to 1, got [0.7, 0.2] with a sum of 0.9");
  CHECK(refusal({0.7, 0.4}) ==
        who + "fractions that add up to 1, got [0.7, 0.4] with a sum of 1.1");
  CHECK(refusal({1.5, -0.5}) == who + "fractions from 0 to 1, got [1.5, -0.5]");
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal({nan, 0.5}).starts_with(who + "fractions from 0 to 1, got ["));
  CHECK(refusal({0.95, 0.05, 0.0}) == who +
                                          "fractions that assign each part at least one of 10 "
                                          "items, got [0.95, 0.05, 0], which give " +
                                          "[10, 0, 0] items");
  CHECK(refusal(std::vector<int64_t>()) == who + "at least 1 part, got none");
  CHECK(refusal(std::vector<double>()) == who + "at least 1 part, got none");
  CHECK(refusal({0.5, 0.5}, 0) == who + "a source with at least 1 item, got 0");
  CHECK(refusal({1}, -1) == who + "a source with at least 1 item, got -1");
  UpToOfTorch unsized;
  unsized.count.reset();
  CHECK(error_of([&] { random_split(unsized, {1}); }) ==
        who + "a dataset with a known size, got a dataset without a size");
  const auto x = torch::ones({3});
  CHECK(error_of([&] { random_split(Dataset{x, torch::ones({2})}, {3}); }) ==
        "sconce::data::Subset: expected as many rows in target as in data (3), got 2");
  const auto next = torch::rand({4});
  torch::manual_seed(5);
  CHECK(torch::ones({3}).equal(x));
  CHECK(torch::rand({4}).equal(next));
}
