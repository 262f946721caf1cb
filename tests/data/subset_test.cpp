#include "sconce/data/subset.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "support/error_of.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::data::Batches;
using sconce::data::DataLoader;
using sconce::data::Dataset;
using sconce::data::Subset;
using sconce::test::error_of;

const std::vector<int64_t> some = {5, 2, 2, 7};

// Item i equals 10 * i. The dataset cannot be copied.
struct Tens {
  Tens() = default;
  Tens(Tens&&) = default;
  int64_t size() const { return 8; }
  torch::Tensor get(int64_t i) const { return torch::full({}, 10 * i); }
};

// Item i equals 100 * i plus a random number below 100 from the item's generator.
struct OneDraw {
  int64_t size() const { return 8; }
  torch::Tensor get(int64_t i, at::Generator generator) const {
    return torch::randint(100, {}, generator, torch::kLong) + 100 * i;
  }
};

// A LibTorch dataset in which each copy counts the items it reads.
struct TensOfTorch : torch::data::Dataset<TensOfTorch, torch::data::TensorExample> {
  torch::data::TensorExample get(size_t i) override {
    ++reads;
    return torch::full({}, 10 * static_cast<int64_t>(i));
  }
  std::optional<size_t> size() const override { return has_size ? std::optional(8) : std::nullopt; }
  int reads = 0;
  bool has_size = true;
};

template <class T>
std::vector<int64_t> items(const T& loader) {
  std::vector<int64_t> all;
  for (auto batch : loader) {
    sconce::nn::for_each_tensor(batch, [&](const torch::Tensor& tensor) {
      for (int64_t i = 0; i < tensor.size(0); ++i) all.push_back(tensor[i].item<int64_t>());
    });
  }
  return all;
}

}  // namespace

TEST_CASE("Subset returns the items at its indices in order, regardless of the number of workers") {
  const Subset subset(Tens(), some);
  CHECK(subset.size() == 4);
  CHECK(subset.indices() == some);
  CHECK(subset.dataset().size() == 8);
  CHECK(subset.get(3).item<int64_t>() == 70);
  for (const int workers : {0, 2}) {
    const DataLoader loader(subset, {.batch_size = 3, .num_workers = workers});
    CHECK(items(loader) == std::vector<int64_t>{50, 20, 20, 70});
  }
  CHECK(items(DataLoader(Subset(Tens(), {}))).empty());
}

TEST_CASE("a Subset of a Subset combines both lists of indices, and its copies share the source") {
  const Subset subset(Tens(), some);
  const auto copy = subset;
  CHECK(&copy.dataset() == &subset.dataset());
  CHECK(&copy.indices() == &subset.indices());
  CHECK(items(DataLoader(Subset(copy, {3, 0}))) == std::vector<int64_t>{70, 50});
  const auto shared = std::make_shared<Tens>();
  const Subset first(shared, {0}), second(shared, {1});
  CHECK(&first.dataset() == shared.get());
  CHECK(&second.dataset() == shared.get());
}

TEST_CASE("Subset seeds each item's random numbers from the item's position in the subset") {
  const DataLoader whole(OneDraw(), {.batch_size = 3, .seed = 4});
  const DataLoader part(Subset(OneDraw(), {7, 1, 2}), {.batch_size = 3, .seed = 4});
  CHECK((*part.begin()).equal(*whole.begin() + torch::tensor({700, 0, 0})));
}

TEST_CASE("Subset reads from copies of a LibTorch dataset, either item by item or in batches") {
  const Subset subset(TensOfTorch(), some);
  for (const int workers : {0, 2}) {
    const DataLoader loader(subset, {.batch_size = 3, .num_workers = workers});
    CHECK(items(loader) == std::vector<int64_t>{50, 20, 20, 70});
  }
  CHECK(subset.dataset().reads == 0);
  CHECK(subset.indices() == some);
  const auto stacked =
      TensOfTorch().map(torch::data::transforms::Stack<torch::data::TensorExample>());
  const Subset batches(stacked, some);
  CHECK(items(DataLoader(batches, {.batch_size = 3})) == std::vector<int64_t>{50, 20, 20, 70});
}

TEST_CASE("a Subset of a tensor pair is a Dataset that contains copies of the selected rows") {
  const Dataset table{torch::arange(16).reshape({8, 2}), 10 * torch::arange(8)};
  const Subset subset(table, some);
  CHECK(subset.size() == 4);
  CHECK(subset.indices() == some);
  CHECK(subset.data.equal(table.data.index_select(0, torch::tensor(some))));
  const Batches batches(subset, {.batch_size = 3});
  CHECK(batches.size() == 2);
  CHECK((*batches.begin(1, 0)).target.equal(torch::tensor({70})));
  table.target.zero_();
  CHECK(subset.target.equal(torch::tensor({50, 20, 20, 70})));
  const Subset again(subset, {3, 0});
  CHECK(again.target.equal(torch::tensor({70, 50})));
  CHECK(again.indices() == std::vector<int64_t>{3, 0});
  CHECK(Batches(again).size() == 2);
}

TEST_CASE("if reading an item throws, the error reports the item's position in the Subset") {
  struct Bad : Tens {
    torch::Tensor get(int64_t i) const {
      TORCH_CHECK(i != 7, "no item ", i);
      return Tens::get(i);
    }
  };
  const DataLoader loader(Subset(Bad(), some));
  CHECK_THAT(error_of([&] { items(loader); }),
             ContainsSubstring("no item 7") && ContainsSubstring("in item 3"));
  REQUIRE(loader.failed_item() == 3);
  CHECK(loader.dataset().indices()[3] == 7);
}

TEST_CASE("Subset rejects a null source, a source without a size, and out-of-range indices") {
  const std::string expected = "sconce::data::Subset: expected ";
  const auto indices_of_8 = expected + "non-negative indices below 8 (the size of the source)";
  CHECK(error_of([] { Subset(Tens(), {0, 8}); }) == indices_of_8 + ", got 8");
  CHECK(error_of([] { Subset(TensOfTorch(), {0, -1}); }) == indices_of_8 + ", got -1");
  CHECK(error_of([] { Subset(std::shared_ptr<Tens>(), {0}); }) == expected + "a source, got null");
  TensOfTorch unsized;
  unsized.has_size = false;
  CHECK(error_of([&] { Subset(unsized, {0}); }) ==
        expected + "a dataset with a known size, got a dataset without a size");
  const auto x = torch::ones({8});
  CHECK(error_of([&] { Subset(Dataset{x, x}, {8}); }) == indices_of_8 + ", got 8");
  CHECK(error_of([&] { Subset(Dataset{x, torch::ones({7})}, {0}); }) ==
        expected + "as many rows in target as in data (8), got 7");
  CHECK(error_of([&] { Subset(Dataset{x, {}}, {0}); }) ==
        expected + "data and target with at least one dimension");
  const Subset subset(Tens(), some);
  const std::string get = "sconce::data::Subset::get: expected a non-negative index below 4";
  CHECK(error_of([&] { subset.get(4); }) == get + ", got 4");
  CHECK(error_of([&] { subset.get(-1); }) == get + ", got -1");
}
