#include "sconce/training/any_batches.hpp"

#include <torch/torch.h>

#include <map>
#include <optional>
#include <tuple>

#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/training/trainer.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::AnyBatch;
using sconce::AnyBatches;
using torch::Tensor;

TEST_CASE("the last part of a batch is the target, and a single tensor is both input and target") {
  const auto a = torch::ones({2}), b = torch::zeros({2, 3}), c = torch::ones({2, 4});
  const auto check = [](const AnyBatch& batch, const std::vector<Tensor>& inputs,
                        const Tensor& target) {
    const auto cut = batch.inputs_and_target();
    REQUIRE(cut.inputs.size() == inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) CHECK(cut.inputs[i].is_same(inputs[i]));
    CHECK(cut.target.is_same(target));
    CHECK(batch.size() == 2);
  };
  check(a, {a}, a);
  check(sconce::data::Dataset{a, b}, {a}, b);
  check(std::pair(a, b), {a}, b);
  check(torch::data::Example<>(a, b), {a}, b);
  check(std::tuple(a, b, c), {a, b}, c);
  check(std::vector{a, b, c}, {a, b}, c);
  check(std::vector{a}, {a}, a);
  const AnyBatch named = std::map<std::string, Tensor>{{"x", a}};
  CHECK(named.inputs_and_target().inputs.empty());
  CHECK(named.size() == 2);
  CHECK(named.as<std::map<std::string, Tensor>>().at("x").is_same(a));
}

TEST_CASE("AnyBatch returns the batch in its original type and rejects any other type") {
  const AnyBatch batch = torch::ones({2});
  CHECK(batch.type() == typeid(Tensor));
  CHECK_THROWS_WITH(batch.as<sconce::data::Dataset>(),
                    ContainsSubstring("expected batches of type sconce::data::Dataset, got "
                                      "at::Tensor"));
  CHECK_THROWS_WITH(AnyBatch(torch::ones({})).size(), ContainsSubstring("at least one dimension"));
  CHECK_THROWS_WITH(AnyBatch(std::vector<Tensor>()).size(), ContainsSubstring("the first tensor"));
}

TEST_CASE(
    "a batch created from an Example is also a Dataset, even after its tensors are replaced or "
    "moved") {
  const auto x = torch::ones({2, 3}), y = torch::zeros({2});
  AnyBatch batch = torch::data::Example<>(x, y);
  const auto check = [&](const Tensor& data, const Tensor& target) {
    CHECK(batch.as<sconce::data::Dataset>().data.is_same(data));
    CHECK(batch.as<sconce::data::Dataset>().target.is_same(target));
    CHECK(batch.as<torch::data::Example<>>().data.is_same(data));
  };
  check(x, y);
  batch.set_tensors({y, x});
  check(y, x);
  batch.to(torch::kMeta);
  CHECK(batch.as<sconce::data::Dataset>().target.is_meta());
  const AnyBatch only_data = torch::data::TensorExample(x);
  CHECK_THROWS_WITH(only_data.as<sconce::data::Dataset>(),
                    ContainsSubstring("expected batches of type sconce::data::Dataset, got"));
}

namespace {

// A training step for a Dataset that returns the mean of the batch's data as its loss.
struct StepOfDataset : torch::nn::Module {
  torch::Tensor training_step(const sconce::data::Dataset& batch) {
    CHECK(batch.data.size(0) == batch.target.size(0));
    return (weight * batch.data).mean();
  }
  torch::Tensor weight = register_parameter("weight", torch::ones({}));
};

struct FiveRows : torch::data::datasets::Dataset<FiveRows> {
  torch::data::Example<> get(size_t i) override {
    return {torch::full({2}, static_cast<float>(i)), torch::tensor(1)};
  }
  std::optional<size_t> size() const override { return 5; }
};

}  // namespace

TEST_CASE("a torch::data::Example is accepted wherever a Dataset is expected") {
  const auto x = torch::arange(5.f).unsqueeze(1);
  const sconce::data::Batches batches(torch::data::Example<>(x, x), {.batch_size = 2});
  CHECK(batches.dataset().data.is_same(x));
  const sconce::data::DataLoader loader(FiveRows(), {.batch_size = 2});
  const auto twice = [](const sconce::data::Dataset& batch) {
    return sconce::data::Dataset{2 * batch.data, batch.target};
  };
  CHECK((*sconce::data::TransformedBatches(loader, twice).begin(2, 0))
            .data.equal(torch::full({1, 2}, 8.f)));
  const auto loss = [](const AnyBatches& of) {
    StepOfDataset model;
    sconce::Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics()});
    return trainer.evaluate(model, of).at("loss");
  };
  CHECK(loss(loader) == 2);
  CHECK(loss(batches) == 2);
  const auto moved = sconce::Trainer({.num_gpus = 0}).prepare_batch(torch::data::Example<>(x, x));
  CHECK(moved.data.is_same(x));
}

TEST_CASE("moving a batch to a device leaves undefined tensors undefined") {
  AnyBatch batch = std::tuple(torch::ones({2}), Tensor());
  batch.to(torch::kMeta);
  const auto& [x, undefined] = batch.as<std::tuple<Tensor, Tensor>>();
  CHECK(x.device() == torch::kMeta);
  CHECK_FALSE(undefined.defined());
}

TEST_CASE("the tensors of a batch can be read and replaced, regardless of the batch type") {
  const auto x = torch::ones({2, 3});
  const auto y = torch::zeros({2});
  sconce::AnyBatch batch = std::pair(x, std::vector<Tensor>{y, x});
  const auto tensors = batch.tensors();
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].is_same(x));
  CHECK(tensors[1].is_same(y));
  batch.set_tensors({y, x, y});
  CHECK(batch.as<std::pair<Tensor, std::vector<Tensor>>>().second[0].is_same(x));
  CHECK_THROWS_WITH(batch.set_tensors({x}),
                    Catch::Matchers::ContainsSubstring(
                        "sconce::AnyBatch::set_tensors: expected 3 tensors, got 1"));
}

TEST_CASE("AnyBatches returns its source's batches, starting at any batch") {
  const auto x = torch::arange(10).unsqueeze(1);
  const sconce::data::Batches batches({x, x}, {.batch_size = 3, .shuffle = true, .seed = 4});
  const AnyBatches loader = batches;
  CHECK(loader.size() == 4);
  for (const int64_t from : {0, 2}) {
    const auto next = loader.begin(from, 1);
    for (auto place = batches.begin(from, 1); place != batches.end(); ++place) {
      CHECK(next().as<sconce::data::Dataset>().data.equal((*place).data));
    }
  }
}

TEST_CASE("AnyBatches starts its source's next epoch in the same way as a loop over the source") {
  const auto x = torch::arange(10);
  const sconce::data::Batches batches({x, x}, {.batch_size = 10, .shuffle = true});
  AnyBatches loader = batches;
  const AnyBatches copy = loader;
  const auto order = [](const AnyBatches& of) {
    return of.begin()().as<sconce::data::Dataset>().data;
  };
  const auto expected = [&](int64_t epoch) { return (*batches.begin(0, epoch)).data; };
  CHECK(order(loader).equal(expected(0)));
  CHECK(order(copy).equal(expected(1)));
  CHECK(order(AnyBatches(batches)).equal(expected(2)));
  CHECK(loader.begin(0, 9)().as<sconce::data::Dataset>().data.equal(expected(9)));
  CHECK((*batches.begin()).data.equal(expected(3)));
  loader.set_epoch(7);
  CHECK((*batches.begin()).data.equal(expected(7)));
  CHECK(order(copy).equal(expected(8)));
}

namespace {

// A custom source whose order depends on its epoch. A source's epoch must not change during a loop.
struct OfEpoch {
  explicit OfEpoch(int64_t of = 0)
      : epoch(of), batches{torch::full({1}, of), torch::full({1}, of)} {}
  int64_t size() const { return 2; }
  void set_epoch(int64_t to) { *this = OfEpoch(to); }
  auto begin() const { return batches.begin(); }
  int64_t epoch;
  std::vector<Tensor> batches;
};

}  // namespace

TEST_CASE(
    "if a source defines only set_epoch, starting another epoch does not affect an epoch that is "
    "already in progress") {
  OfEpoch source(2);
  AnyBatches loader = source;
  const auto epoch_of = [](const AnyBatches::Next& next) {
    return next().as<Tensor>().item<int64_t>();
  };
  const auto running = loader.begin();
  CHECK(epoch_of(running) == 2);
  const auto named = loader.begin(1, 5);
  CHECK(epoch_of(loader.begin(0, 6)) == 6);
  CHECK(epoch_of(named) == 5);
  CHECK(epoch_of(running) == 2);
  CHECK(epoch_of(loader.begin()) == 2);
  loader.set_epoch(3);
  CHECK(epoch_of(loader.begin()) == 3);
}

namespace {

// Throws if an item from a skipped batch is read.
struct FromFour {
  int64_t size() const { return 8; }
  Tensor get(int64_t i) const {
    TORCH_CHECK(i >= 4, "read item ", i);
    return torch::tensor(i);
  }
};

}  // namespace

TEST_CASE("a source that can start at a given batch does not read earlier batches") {
  const AnyBatches loader = sconce::data::DataLoader(FromFour(), {.batch_size = 2});
  const auto next = loader.begin(2, 0);
  CHECK(next().as<Tensor>().equal(torch::tensor({4, 5})));
  CHECK(next().as<Tensor>().equal(torch::tensor({6, 7})));
  CHECK_THROWS_WITH(loader.begin(1, 0)(), Catch::Matchers::ContainsSubstring("read item 2"));
}
