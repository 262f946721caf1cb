// Measures the work that a training step requests from LibTorch in addition to the forward and
// backward passes. The baseline is the same forward and backward passes, written with LibTorch
// alone. The expected counts are upper bounds that hold on a busy machine and with every LibTorch
// version. The bounds equal the current counts, so a change that lowers a count must also lower the
// bound.

#include <array>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/one_with_gloo.hpp"
#include "support/step_counts.hpp"

using sconce::test::Counting;
using sconce::test::Counts;
using sconce::test::counts_of;
using torch::nn::functional::cross_entropy;

namespace {

#define CHECK_AT_MOST(counted, bound) \
  do {                                \
    INFO("counted " << (counted));    \
    CHECK((counted) <= (bound));      \
  } while (false)

constexpr int64_t rows = 8;

torch::nn::Sequential simple_nn() {
  return torch::nn::Sequential(torch::nn::Linear(64, 16), torch::nn::ReLU(),
                               torch::nn::Linear(16, 10));
}

torch::nn::Sequential mlp() {
  return torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(784, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10));
}

torch::nn::Sequential lenet() {
  using torch::nn::Conv2dOptions;
  return torch::nn::Sequential(
      torch::nn::Conv2d(Conv2dOptions(1, 6, 5).padding(2)), torch::nn::ReLU(),
      torch::nn::MaxPool2d(2), torch::nn::Conv2d(Conv2dOptions(6, 16, 5)), torch::nn::ReLU(),
      torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(400, 120), torch::nn::ReLU(),
      torch::nn::Linear(120, 84), torch::nn::ReLU(), torch::nn::Linear(84, 10));
}

sconce::data::Dataset pictures(int64_t n, torch::IntArrayRef sizes) {
  std::vector<int64_t> shape = {n};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return {torch::rand(shape), torch::randint(10, {n}, torch::kLong)};
}

void forget_gradients(const std::vector<torch::Tensor>& parameters) {
  for (const auto& parameter : parameters) parameter.mutable_grad().reset();
}

// Runs the forward and backward passes that all steps in this file share, using only LibTorch.
template <class Model>
void pass(Model& model, const sconce::data::Dataset& batch, bool bf16 = false) {
  torch::Tensor loss;
  {
    const sconce::amp::AutocastGuard autocast(torch::kCPU, {.enabled = bf16});
    loss = cross_entropy(model->forward(batch.data), batch.target);
  }
  loss.backward();
}

Counts counts_of_pass(torch::nn::Sequential& model, const sconce::data::Dataset& batch,
                      bool bf16 = false) {
  const auto parameters = model->parameters();
  const auto counts = counts_of([&] {
    forget_gradients(parameters);
    pass(model, batch, bf16);
  });
  REQUIRE(counts.operators > 10);
  REQUIRE(counts.allocations > 5);
  return counts;
}

Counts extra_of_step(sconce::optim::Optimizer& optimizer, torch::nn::Sequential& model) {
  const auto batch = pictures(rows, {64});
  const auto step = counts_of([&] {
    optimizer.zero_grad();
    pass(model, batch);
    optimizer.step();
  });
  return step - counts_of_pass(model, batch);
}

// Records the counts at the end of each step.
struct CountSteps : sconce::TrainerCallback {
  explicit CountSteps(const Counting& of) : counting(of) {}
  void on_after_optimizer_step(sconce::Fit&) override { after.push_back(counting.counts()); }
  const Counting& counting;
  std::vector<Counts> after = {};
};

// Returns the counts of a warm Trainer step minus the counts of an equivalent hand-written step,
// which loads the batch, runs the forward and backward passes, and calls the optimizer.
Counts extra_of_trainer(torch::nn::Sequential model, const sconce::TrainerOptions& options) {
  const sconce::data::Batches batches(pictures(6 * rows, {1, 28, 28}),
                                      {.batch_size = rows, .shuffle = true});
  sconce::optim::SGD optimizer(model->parameters(), 0.01);
  const auto by_hand = counts_of([&, next = batches.begin()]() mutable {
    const auto batch = *next;
    ++next;
    optimizer.zero_grad();
    pass(model, batch);
    optimizer.step();
  });
  const Counting counting;
  CountSteps steps(counting);
  sconce::Trainer(options).fit(model, optimizer, {.train = batches, .callbacks = {&steps}});
  REQUIRE(steps.after.size() == 6);
  return steps.after[4] - steps.after[3] - by_hand;
}

}  // namespace

TEST_CASE("SGD adds one kernel to a step") {
  auto model = simple_nn();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  // One call allocates the empty tensor that the threads use to divide the parameters among
  // themselves, and one call runs the kernel.
  CHECK_AT_MOST(extra_of_step(optimizer, model), (Counts{.operators = 2, .allocations = 1}));
}

TEST_CASE("Adam adds one kernel to a step and, on the CPU, reads each parameter's step count") {
  auto model = simple_nn();
  sconce::optim::Adam optimizer(model->parameters(), 0.001);
  // Compared with SGD, one additional call increments all step counts. LibTorch's kernel makes two
  // calls to read each step count.
  CHECK_AT_MOST(extra_of_step(optimizer, model),
                (Counts{.operators = 2 + 1 + 2 * 4, .host_reads = 4, .allocations = 1}));
}

TEST_CASE("sconce's SGD and Adam make far fewer operator calls per step than torch::optim") {
  std::vector<torch::Tensor> parameters;
  for (int i = 0; i < 100; ++i) {
    parameters.push_back(torch::ones({4}).requires_grad_());
    parameters.back().mutable_grad() = torch::ones({4});
  }
  const auto calls = [](torch::optim::Optimizer&& optimizer) {
    return counts_of([&] { optimizer.step(); }).operators;
  };
  const auto momentum = torch::optim::SGDOptions(0.01).momentum(0.9);
  CHECK(50 * calls(sconce::optim::SGD(parameters, momentum)) <
        calls(torch::optim::SGD(parameters, momentum)));
  CHECK(4 * calls(sconce::optim::Adam(parameters, 0.01)) <
        calls(torch::optim::Adam(parameters, 0.01)));
}

TEST_CASE("mixed-precision scaling and clipping have bounded per-step overhead") {
  auto model = simple_nn();
  const auto parameters = model->parameters();
  const auto batch = pictures(rows, {64});
  sconce::optim::SGD optimizer(parameters, 0.01);
  sconce::amp::GradScaler scaler({.device = torch::kCPU});
  const auto step = counts_of([&] {
    optimizer.zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU);
      loss = cross_entropy(model->forward(batch.data), batch.target);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    sconce::nn::clip_grad_norm_(parameters, 1.0);
    scaler.step(optimizer);
    scaler.update();
  });
  // SGD makes 2 of the calls, and clip_grad_norm_ makes 44. Nearly all calls in clip_grad_norm_
  // come from the foreach kernels, which process the tensors one at a time on the CPU. The host
  // reads no values from tensors.
  CHECK_AT_MOST(step - counts_of_pass(model, batch, /*bf16=*/true),
                (Counts{.operators = 71, .allocations = 21, .copies = 4}));
}

TEST_CASE("the Trainer's per-step overhead does not depend on the model") {
  for (const auto& model : {mlp(), lenet()}) {
    // For a batch that is already on its device, the Trainer makes two calls. Detaching the loss
    // takes two calls, and adding the float loss to a double sum takes five.
    Counts bound = {.operators = 2 + 2 + 5, .allocations = 1, .copies = 1};
    CHECK_AT_MOST(extra_of_trainer(model, {.num_gpus = 0, .metrics = sconce::Metrics{}}), bound);
    // To compute the accuracy, two calls detach the outputs, two run argmax, one compares the
    // classes, three fill the three sums, two select the first sum, seven count the hits, and one
    // adds the hits.
    bound.operators += 2 + 2 + 1 + 3 + 2 + 7 + 1;
    bound.allocations += 5;
    bound.copies += 1;
    CHECK_AT_MOST(extra_of_trainer(model, {.num_gpus = 0}), bound);
  }
}

TEST_CASE("a shuffled batch is copied once, and an unshuffled batch is not copied") {
  const auto dataset = pictures(6 * rows, {64});
  const auto count = [&](bool shuffle) {
    const sconce::data::Batches batches(dataset, {.batch_size = rows, .shuffle = shuffle});
    return counts_of([next = batches.begin()]() mutable {
      *next;
      ++next;
    });
  };
  // Each of the two `narrow` calls makes three operator calls.
  CHECK_AT_MOST(count(false), (Counts{.operators = 6}));
  // Creating the row numbers takes three operator calls. The two index_select calls take eight
  // operator calls in total, and each index_select allocates memory twice.
  CHECK_AT_MOST(count(true), (Counts{.operators = 11, .allocations = 4}));
}

TEST_CASE("DistributedDataParallel's per-step overhead is bounded") {
  const auto group = sconce::test::one_with_gloo();
  auto model = simple_nn();
  sconce::nn::DistributedDataParallel parallel(model, group);
  sconce::optim::SGD optimizer(model->parameters(), 0.01);
  const auto batch = pictures(rows, {64});
  const auto step = counts_of([&] {
    optimizer.zero_grad();
    auto* callee = &parallel;
    pass(callee, batch);
    optimizer.step();
  });
  // SGD makes 2 calls. LibTorch's Reducer makes nine calls for each of the four gradients, to copy
  // the gradient into the bucket and back, and one call to reduce the bucket.
  CHECK_AT_MOST(step - counts_of_pass(model, batch),
                (Counts{.operators = 39, .allocations = 9, .copies = 8}));
}
