#include "sconce/data/from_torch.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::Dataset;
using sconce::data::from_torch;
using sconce::data::TransformedBatches;

namespace {

using Shuffled = torch::data::samplers::RandomSampler;
using InOrder = torch::data::samplers::SequentialSampler;

// A ten-row dataset in which row i contains i. Reading row `broken` fails.
struct TenRows : torch::data::Dataset<TenRows> {
  explicit TenRows(size_t row = 10) : broken(row) {}
  torch::data::Example<> get(size_t i) override {
    if (i == broken) throw std::out_of_range("broken row");
    return {torch::full({2}, static_cast<float>(i)), torch::tensor(static_cast<int64_t>(i) % 2)};
  }
  std::optional<size_t> size() const override { return 10; }
  size_t broken;
};

// Returns a loader with four batches per epoch.
template <class Sampler>
auto torch_loader(size_t workers, TenRows rows = TenRows()) {
  return torch::data::make_data_loader<Sampler>(
      std::move(rows).map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(3).workers(workers));
}

// Returns the rows of one epoch in the order in which the source yields them.
template <class Source>
std::vector<float> rows_of(Source&& source) {
  std::vector<float> rows;
  for (const auto& batch : source) {
    const auto* data = batch.data.template const_data_ptr<float>();
    for (int64_t i = 0; i < batch.data.size(0); ++i) rows.push_back(data[2 * i]);
  }
  return rows;
}

const std::vector<float> in_order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static_assert(std::input_iterator<decltype(from_torch(torch_loader<Shuffled>(0), 1).begin())>);
static_assert(sconce::data::detail::is_list_of_examples<std::vector<torch::data::Example<>>>);
static_assert(!sconce::data::detail::is_list_of_examples<std::vector<torch::Tensor>>);

struct TwoByTwo : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

}  // namespace

TEST_CASE(
    "from_torch returns batches in the same order as a plain loop and reshuffles for each epoch") {
  const auto workers = GENERATE(0, 2);
  torch::manual_seed(3);
  const auto plain = torch_loader<Shuffled>(workers);
  std::vector<std::vector<float>> expected;
  for (int epoch = 0; epoch < 3; ++epoch) expected.push_back(rows_of(*plain));
  torch::manual_seed(3);
  const auto batches = from_torch(torch_loader<Shuffled>(workers), 4);
  CHECK(batches.size() == 4);
  for (const auto& rows : expected) CHECK(rows_of(batches) == rows);
  CHECK(expected[0] != expected[1]);
  CHECK(batches.begin().epoch() == 3);
}

TEST_CASE("a fit over from_torch matches a plain loop over the same loader") {
  const auto make = [] {
    torch::manual_seed(5);
    return std::pair(TwoByTwo(), torch_loader<Shuffled>(0));
  };
  auto [expected, plain] = make();
  torch::optim::SGD sgd(expected.parameters(), torch::optim::SGDOptions(0.01));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : *plain) {
      sgd.zero_grad();
      const auto output = expected.forward(batch.data);
      torch::nn::functional::cross_entropy(output, batch.target).backward();
      sgd.step();
    }
  }
  auto [model, of_torch] = make();
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
  sconce::Trainer trainer({.max_epochs = 2, .num_gpus = 0});
  const auto result = trainer.fit(model, optimizer, {.train = from_torch(std::move(of_torch), 4)});
  CHECK(result.epochs.back().examples == 10);
  CHECK(torch::equal(model.linear->weight, expected.linear->weight));
  CHECK(torch::equal(model.linear->bias, expected.linear->bias));
}

TEST_CASE(
    "a fit over from_torch resumes exactly at an epoch boundary but cannot resume mid-epoch") {
  const sconce::test::TempDir folder;
  const auto train = [](const std::string& to, int epochs, int64_t stop_at = -1) {
    torch::manual_seed(5);
    TwoByTwo model;
    sconce::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
    sconce::Checkpoint checkpoint(to, {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    int64_t steps = 0;
    sconce::test::StopWhen stopping([&] { return ++steps == stop_at; });
    sconce::Trainer({.max_epochs = epochs})
        .fit(
            model, optimizer,
            {.train = from_torch(torch_loader<Shuffled>(0), 4), .callbacks = {&saving, &stopping}});
    return model.linear->weight;
  };
  const auto whole = train(folder.path() / "whole", 4);
  train(folder.path() / "parts", 2);
  CHECK(torch::equal(train(folder.path() / "parts", 4), whole));
  train(folder.path() / "within", 2, 6);
  CHECK_THROWS_WITH(train(folder.path() / "within", 2),
                    ContainsSubstring("from_torch: expected to start at batch 0") &&
                        ContainsSubstring("got batch 2"));
}

TEST_CASE("from_torch throws if an epoch contains fewer batches than declared") {
  const auto workers = GENERATE(0, 2);
  const auto batches = from_torch(torch_loader<InOrder>(workers), 5);
  auto place = batches.begin();
  for (int i = 0; i < 4; ++i) ++place;
  CHECK_THROWS_WITH(*place, ContainsSubstring("sconce::data::from_torch: expected 5 batches in an "
                                              "epoch of the loader, got 4"));
  CHECK(place == std::default_sentinel);
  CHECK(torch::equal((*batches.begin()).target, torch::tensor({0, 1, 0})));
}

TEST_CASE("after a loop over from_torch stops early, the next loop starts from the first batch") {
  const auto workers = GENERATE(0, 2);
  const auto batches = from_torch(torch_loader<InOrder>(workers), 2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(rows_of(batches) == std::vector<float>{0, 1, 2, 3, 4, 5});
  }
  const auto copy = batches;
  auto left = batches.begin();
  CHECK((*left).data[0][0].item<float>() == 0);
  CHECK((*copy.begin()).data[0][0].item<float>() == 0);
  CHECK((*left).data[0][0].item<float>() == 0);  // the batch is still valid
  ++left;
  CHECK_THROWS_WITH(*left, ContainsSubstring("expected one loop at a time"));
}

TEST_CASE(
    "an unreadable row ends the from_torch epoch, and the next epoch starts from the first batch") {
#ifdef __SANITIZE_THREAD__
  // A worker thread passes its exception to LibTorch, and ThreadSanitizer cannot see the reference
  // counting that libstdc++ uses for exceptions.
  const size_t workers = 0;
#else
  const auto workers = GENERATE(size_t{0}, size_t{2});
#endif
  const auto batches = from_torch(torch_loader<InOrder>(workers, TenRows(4)), 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto place = batches.begin();
    CHECK((*place).data[0][0].item<float>() == 0);
    ++place;
    CHECK_THROWS_WITH(*place, ContainsSubstring("broken row"));
    CHECK(place == std::default_sentinel);
  }
}

TEST_CASE("from_torch cannot start mid-epoch or be shared by several processes") {
  const auto batches = from_torch(torch_loader<InOrder>(0), 4);
  CHECK(rows_of(batches) == in_order);
  CHECK(batches.begin(0, 7).epoch() == 7);
  CHECK_THROWS_WITH(batches.begin(3, 0),
                    ContainsSubstring("from_torch: expected to start at batch 0") &&
                        ContainsSubstring("got batch 3; sconce::data::DataLoader can"));
  CHECK_THROWS_WITH(batches.begin(0, -1), ContainsSubstring("epoch to be at least 0, got -1"));
  const auto with_noise = [](Dataset batch, const at::Generator& generator) {
    return Dataset{batch.data + torch::rand({1}, generator), batch.target};
  };
  const sconce::AnyBatches loaders[] = {batches, TransformedBatches(batches, with_noise)};
  for (const auto& of_any : loaders) {
    CHECK_NOTHROW(of_any.check_world_size(1));
    CHECK_THROWS_WITH(
        of_any.check_world_size(2),
        ContainsSubstring("from_torch: expected a process group of one rank, got a group of 2; "
                          "sconce::data::DataLoader accepts the loader's dataset"));
  }
}

TEST_CASE("from_torch rejects a null loader and an empty epoch") {
  CHECK_THROWS_WITH(from_torch(decltype(torch_loader<Shuffled>(0))(), 4),
                    ContainsSubstring("from_torch: expected a loader, got null"));
  CHECK_THROWS_WITH(from_torch(torch_loader<Shuffled>(0), 0),
                    ContainsSubstring("from_torch: expected at least 1 batch, got 0"));
}

namespace {

// A loader whose `size()` is larger than the number of batches it returns, which can happen with a
// stream.
struct ShortStream {
  using Batches = std::vector<Dataset>;
  int64_t size() const { return 10; }
  Batches::const_iterator begin() const { return batches.begin(); }
  Batches::const_iterator end() const { return batches.end(); }
  Batches batches = Batches(7, Dataset{torch::ones({2, 2}), torch::ones({2}, torch::kLong)});
};

// A torch::data loader with four batches per epoch.
struct ShortLoader {
  int64_t size() const { return 10; }
  auto begin() const { return loader->begin(); }
  auto end() const { return loader->end(); }
  std::shared_ptr<std::remove_reference_t<decltype(*torch_loader<InOrder>(0))>> loader =
      torch_loader<InOrder>(0);
};

}  // namespace

TEST_CASE(
    "if a batch source ends before size() batches, the loop throws and does not read past the "
    "end") {
  TwoByTwo model;
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
  sconce::Trainer trainer({.num_gpus = 0});
  const auto same = [](Dataset batch) { return batch; };
  const auto expected = [](int64_t got) {
    return ContainsSubstring(
        "sconce::BatchSource: expected 10 batches in an epoch (as reported by the source's "
        "size()), got " +
        std::to_string(got));
  };
  const sconce::AnyBatches sources[] = {ShortStream(), TransformedBatches(ShortStream(), same)};
  for (const auto& source : sources) {
    CHECK_THROWS_WITH(trainer.fit(model, optimizer, {.train = source}), expected(7));
    CHECK_THROWS_WITH(trainer.evaluate(model, source), expected(7));
    CHECK_THROWS_WITH(source.begin(8, 0)(), expected(7));
  }
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, {.train = ShortLoader()}), expected(4));
}
