// Tests the results of `Trainer::predict` and the state that `Trainer::predict` must not change.
#include <stdexcept>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/from_torch.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"
#include "support/one_with_gloo.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::Trainer;
using sconce::amp::Precision;
using sconce::data::Batches;
using sconce::data::Dataset;
using sconce::test::error_of;
using sconce::test::net;
using sconce::test::points;

namespace {

using Tensors = std::vector<torch::Tensor>;

bool equal(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.scalar_type() == y.scalar_type() && x.equal(y);
  });
}

// Returns the predictions of a hand-written loop over the batches.
template <class T>
Tensors by_hand(torch::nn::Sequential model, const T& batches, Precision precision) {
  Tensors outputs;
  model->eval();
  {
    const torch::NoGradGuard no_grad;
    for (const auto& batch : batches) {
      const sconce::amp::AutocastGuard autocast(
          torch::kCPU, {.dtype = torch::kBFloat16, .enabled = precision == Precision::bf16});
      outputs.push_back(model->forward(batch.data));
    }
  }
  model->train();
  return outputs;
}

// A model whose custom prediction step accepts tensors as batches.
struct Doubles : torch::nn::Cloneable<Doubles> {
  Doubles() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  torch::Tensor training_step(const Dataset& batch) { return linear->forward(batch.data).sum(); }
  torch::Tensor predict_step(const torch::Tensor& x) const { return 2 * linear->forward(x); }
  mutable torch::nn::Linear linear = nullptr;
};

struct OneRow {
  int64_t size() const { return 10; }
  Dataset get(int64_t i) const { return {all.data[i], all.target[i]}; }
  Dataset all = points(10);
};

struct RowsOfTorch : torch::data::Dataset<RowsOfTorch> {
  torch::data::Example<> get(size_t i) override {
    const auto row = static_cast<int64_t>(i);
    return {all.data[row], all.target[row]};
  }
  std::optional<size_t> size() const override { return 10; }
  sconce::data::Dataset all = points(10);
};

}  // namespace

TEST_CASE("predict matches a hand-written loop bit for bit in each precision") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16);
  auto model = net();
  const Batches batches(points(10), {.batch_size = 4});
  const auto outputs = Trainer({.num_gpus = 0, .precision = precision}).predict(model, batches);
  REQUIRE(outputs.size() == 3);
  CHECK(outputs[2].sizes() == std::vector<int64_t>{2, 2});
  CHECK(outputs[0].scalar_type() ==
        (precision == Precision::bf16 ? torch::kBFloat16 : torch::kFloat));
  CHECK_FALSE(outputs[0].requires_grad());
  CHECK(equal(outputs, by_hand(model, batches, precision)));
}

TEST_CASE("predict accepts any batch source and a function that receives the outputs") {
  auto model = net();
  Trainer trainer({.num_gpus = 0});
  const Batches batches(points(10), {.batch_size = 4});
  const auto expected = trainer.predict(model, batches);
  const sconce::data::DataLoader loader(OneRow(), {.batch_size = 4, .num_workers = 2});
  CHECK(equal(trainer.predict(model, loader), expected));
  auto of_torch = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      RowsOfTorch().map(torch::data::transforms::Stack<>()), 4);
  CHECK(equal(trainer.predict(model, sconce::data::from_torch(std::move(of_torch), 3)), expected));
  CHECK(equal(trainer.predict(model, points(10).data.split(4)), expected));  // without a target
  Tensors given;
  trainer.predict(model, batches, [&](const torch::Tensor& output) {
    CHECK_FALSE(torch::GradMode::is_enabled());
    CHECK(output.device() == trainer.device());
    given.push_back(output);
  });
  CHECK(equal(given, expected));
  CHECK(Trainer({.num_gpus = 0, .fast_dev_run = true}).predict(model, batches).size() == 1);
}

TEST_CASE("predict disables autocast while it calls the function that receives the outputs") {
  auto model = net();
  const Batches batches(points(4), {.batch_size = 4});
  Trainer({.num_gpus = 0, .precision = Precision::bf16})
      .predict(model, batches, [](const torch::Tensor& output) {
        CHECK(output.scalar_type() == torch::kBFloat16);
        const auto wide = output.to(torch::kFloat);
        CHECK(wide.matmul(wide.t()).scalar_type() == torch::kFloat);
      });
}

TEST_CASE(
    "predict uses predict_step if the model defines it and forward otherwise, in every replica and "
    "on every rank") {
  torch::manual_seed(1);
  auto own = std::make_shared<Doubles>();
  const auto x = points(10).data;
  const Tensors expected = {2 * own->linear->forward(x)};
  Trainer trainer({.num_gpus = 0});
  CHECK(equal(trainer.predict(own, Tensors{x}), {expected[0].detach()}));
  const std::vector<torch::Device> two = {torch::kCPU, torch::kCPU};
  sconce::nn::DataParallel replicas(own, {.device_ids = two});
  CHECK(torch::allclose(trainer.predict(replicas, Tensors{x})[0], expected[0], 1.3e-6, 1e-5));
  auto plain = sconce::test::net_without_dropout();
  const Batches batches(points(10), {.batch_size = 10});
  const auto of_plain = trainer.predict(plain, batches);
  sconce::nn::DataParallel plain_replicas(plain, {.device_ids = two});
  CHECK(torch::allclose(trainer.predict(plain_replicas, batches)[0], of_plain[0], 1.3e-6, 1e-5));
  const auto group = sconce::test::one_with_gloo();
  sconce::nn::DistributedDataParallel of_rank(plain, group);
  Trainer ranks({.num_gpus = 0, .process_group = group});
  CHECK(equal(ranks.predict(of_rank, batches), of_plain));
}

TEST_CASE("predict runs in evaluation mode and restores the modes, even after an exception") {
  auto model = net();
  model[0]->eval();
  Trainer trainer({.num_gpus = 0});
  const Batches batches(points(10), {.batch_size = 4});
  const auto unchanged = [&] {
    return model->is_training() && !model[0]->is_training() && model[2]->is_training() &&
           torch::GradMode::is_enabled() && !at::autocast::is_autocast_enabled(torch::kCPU);
  };
  trainer.predict(model, batches,
                  [&](const torch::Tensor&) { CHECK_FALSE(model[2]->is_training()); });
  CHECK(unchanged());
  const auto throws = [](const torch::Tensor&) { throw std::runtime_error("by the function"); };
  Trainer half({.num_gpus = 0, .precision = Precision::bf16});
  CHECK_THROWS_WITH(half.predict(model, batches, throws), "by the function");
  CHECK(unchanged());
  const Tensors too_wide = {torch::ones({4, 3})};
  CHECK_THROWS_AS(half.predict(model, too_wide), c10::Error);
  CHECK(unchanged());
}

TEST_CASE("predict performs no host reads and does not affect the next fit") {
  const auto fit = [](bool predicts) {
    auto model = net();
    sconce::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.5));
    Trainer trainer({.max_epochs = 2, .num_gpus = 0});
    const auto with = sconce::test::data();
    torch::manual_seed(9);
    trainer.fit(model, sgd, with);
    if (predicts) {
      const sconce::test::HostReads reads;
      trainer.predict(model, with.train);
      CHECK(reads.count() == 0);
      CHECK(model->is_training());
    }
    trainer.fit(model, sgd, with);
    Tensors values;
    for (const auto& parameter : model->parameters()) values.push_back(parameter.detach());
    values.push_back(torch::rand({4}));
    return values;
  };
  CHECK(equal(fit(true), fit(false)));
}

TEST_CASE("predict rejects invalid arguments and reports the expected and actual values") {
  Trainer trainer({.num_gpus = 0});
  auto model = net();
  const Batches batches(points(4), {.batch_size = 4});
  CHECK(error_of([&] { trainer.predict(model, Tensors()); }) ==
        "sconce::Trainer::predict: expected data, got no batch");
  CHECK(error_of([&] { trainer.predict(model, batches, nullptr); }) ==
        "sconce::Trainer::predict: expected a function, got an empty std::function");
  std::shared_ptr<Doubles> null;
  CHECK(error_of([&] { trainer.predict(null, batches); }) ==
        "sconce::Trainer: expected a model, got null");
  struct Nothing : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor&) { return {}; }
  } nothing;
  CHECK(error_of([&] {
          using Three = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
          const auto x = torch::ones({4, 2});
          trainer.predict(nothing, std::vector<Three>{{x, x, x}});
        })
            .starts_with("sconce::Trainer: expected a model whose forward takes 2 tensors and "
                         "returns one, or one with predict_step"));
  auto own = std::make_shared<Doubles>();
  CHECK_THAT(error_of([&] { trainer.predict(own, batches); }),
             ContainsSubstring("expected batches of type at::Tensor, got sconce::data::Dataset"));
  CHECK(error_of([&] { trainer.predict(nothing, batches); }) ==
        "sconce::Trainer: expected an output from the model, got an undefined tensor");
}

TEST_CASE("on a GPU, each prediction is moved to the CPU with a single copy", "[gpu]") {
  sconce::test::require_gpu();
  auto model = net();
  const Batches batches(points(10), {.batch_size = 4});
  const auto expected = by_hand(model, batches, Precision::fp32);
  Trainer trainer({.num_gpus = 1});
  trainer.prepare_model(*model);
  {
    const sconce::test::HostReads reads;
    const auto outputs = trainer.predict(model, batches);
    CHECK(reads.count() == 3);
    REQUIRE(outputs.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(outputs[i].is_cpu());
      CHECK(torch::allclose(outputs[i], expected[i], 1e-3, 1e-4));
    }
  }
  const sconce::test::HostReads reads;
  trainer.predict(model, batches, [](const torch::Tensor& output) { CHECK(output.is_cuda()); });
  CHECK(reads.count() == 0);
}
