#include "sconce/report/lr_find.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/optim/adadelta.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/points.hpp"
#include "support/svg.hpp"

using Catch::Matchers::ContainsSubstring;

namespace {

// Returns a model with buffers, dropout, a frozen layer, and a layer in evaluation mode.
torch::nn::Sequential model_of_all_kinds() {
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(2, 8), torch::nn::BatchNorm1d(8),
                              torch::nn::Dropout(0.5), torch::nn::Linear(8, 8),
                              torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2));
  model[3]->as<torch::nn::Linear>()->weight.requires_grad_(false);
  model[4]->eval();
  return model;
}

// Returns all state that training reads or modifies, as tensors.
std::vector<torch::Tensor> state_of(torch::nn::Sequential& model,
                                    torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all = {at::detail::getDefaultCPUGenerator().get_state()};
  for (const auto& parameter : model->parameters()) {
    all.push_back(parameter.detach().clone());
    if (parameter.grad().defined()) all.push_back(parameter.grad().clone());
  }
  for (const auto& buffer : model->buffers()) all.push_back(buffer.clone());
  std::stringstream modes;
  for (const auto& module : model->modules()) modes << module->is_training();
  const auto bytes = torch::pickle_save(sconce::Stateful(optimizer).state_dict());
  const std::string text = modes.str() + std::string(bytes.begin(), bytes.end());
  all.push_back(torch::tensor(std::vector<int64_t>(text.begin(), text.end())));
  return all;
}

bool equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.equal(y); });
}

const sconce::LRFindOptions on_the_cpu = {.trainer = {.num_gpus = 0}};

template <class Optimizer, class Options>
void check_restored(const Options& options) {
  auto model = model_of_all_kinds(), twin = model_of_all_kinds();
  Optimizer optimizer(model->parameters(), options), of_twin(twin->parameters(), options);
  const auto batches = sconce::test::data().train;
  sconce::Trainer trainer({.num_gpus = 0});
  for (int epoch = 0; epoch < 2; ++epoch) {
    torch::manual_seed(epoch);
    const auto before = state_of(model, optimizer);  // initially, the optimizer is new
    sconce::lr_find(model, optimizer, batches, on_the_cpu);
    CHECK(equal(state_of(model, optimizer), before));
    for (const auto& [net, step] : {std::pair(&model, &optimizer), std::pair(&twin, &of_twin)}) {
      torch::manual_seed(epoch + 1);
      trainer.fit(*net, *step, batches);
      (*net)[4]->eval();
    }
    torch::manual_seed(epoch + 1);
    CHECK(equal(state_of(model, optimizer), state_of(twin, of_twin)));
  }
}

}  // namespace

TEST_CASE("lr_find restores the model, optimizer, modes, gradients, and generator bit for bit") {
  check_restored<sconce::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  check_restored<sconce::optim::Adam>(torch::optim::AdamOptions(0.01));
  check_restored<sconce::optim::Adadelta>(sconce::optim::AdadeltaOptions(1.0));
  check_restored<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01));
  check_restored<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

TEST_CASE("lr_find returns smoothed losses, a suggested learning rate, and a chart") {
  const auto batches = sconce::test::data().train;  // 6 batches, so there are several epochs
  auto model = sconce::test::net_without_dropout(), twin = sconce::test::net_without_dropout();
  torch::optim::SGD optimizer(model->parameters(), 0.1), of_twin(twin->parameters(), 0.1);
  const auto found =
      sconce::lr_find(model, optimizer, batches,
                      {.start_lr = 1e-4, .end_lr = 1, .num_it = 41, .trainer = {.num_gpus = 0}});
  std::vector<double> losses;
  double mean = 0, weights = 0;
  sconce::AnyBatches::Next next;
  for (int step = 0; step < 41; ++step) {
    if (step % 6 == 0) next = batches.begin(0, step / 6);
    const auto batch = next();
    const auto rows = batch.as<sconce::data::Dataset>();
    of_twin.param_groups()[0].options().set_lr(1e-4 * std::pow(10., step / 10.));
    of_twin.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(twin->forward(rows.data), rows.target);
    loss.backward();
    of_twin.step();
    mean = 0.98 * mean + loss.item<double>();
    weights = 0.98 * weights + 1;
    losses.push_back(mean / weights);
  }
  REQUIRE(found.lrs.size() == 41);
  CHECK(found.lrs[0] == 1e-4);
  CHECK(found.lrs[10] == Catch::Approx(1e-3));
  CHECK(found.lrs[40] == Catch::Approx(1));
  for (size_t i = 0; i < 41; ++i) CHECK(found.losses[i] == Catch::Approx(losses[i]));
  REQUIRE(found.suggestion);
  CHECK(*found.suggestion > 1e-3);
  CHECK(*found.suggestion < 0.5);
  const auto chart = found.chart();
  CHECK(chart.panels[0].y_label == "loss");
  CHECK(chart.panels[0].series[0].x[10] == Catch::Approx(-3));
  CHECK(sconce::test::svg_problem(chart.svg()).empty());
}

namespace {

// A model whose loss starts at `first` and is multiplied by a factor in each step.
struct Diverging : torch::nn::Module {
  explicit Diverging(double first, double factor_of_a_step)
      : loss(first), factor(factor_of_a_step) {}
  torch::Tensor training_step(const sconce::data::Dataset&) {
    const auto value = w * 0 + loss;
    loss *= factor;
    return value.sum();
  }
  double loss, factor;
  torch::Tensor w = register_parameter("w", torch::ones({1}));
};

}  // namespace

TEST_CASE("lr_find stops when the loss diverges and throws if the loss diverges immediately") {
  const auto batches = sconce::test::data().train;
  const auto find = [&](double first, double factor, sconce::LRFindOptions options = on_the_cpu) {
    Diverging model(first, factor);
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    auto found = sconce::lr_find(model, optimizer, batches, options);
    CHECK(optimizer.param_groups()[0].options().get_lr() == 0.1);
    return found;
  };
  const auto found = find(1, 1.1);
  CHECK(found.losses.size() < 40);
  CHECK(found.losses.back() > 4);
  CHECK_FALSE(found.suggestion);  // the loss never decreases
  CHECK(find(1, 1.1, {.num_it = 50, .stop_div = false, .trainer = {.num_gpus = 0}}).lrs.size() ==
        50);
  const std::string message =
      "sconce::lr_find: expected a loss that stays finite and below 4 times "
      "its lowest value for more than 15 steps, got a loss that diverged after ";
  CHECK_THROWS_WITH(find(1, 2), ContainsSubstring(message));
  CHECK_THROWS_WITH(find(std::nan(""), 1),
                    ContainsSubstring(message + "0 steps at a learning rate of 1e-07"));
}

TEST_CASE(
    "lr_find restores the model if a step throws, and rejects invalid options before doing any "
    "work") {
  struct Throws : Diverging {
    using Diverging::Diverging;
    torch::Tensor training_step(const sconce::data::Dataset& batch) {
      if (++steps == 3) throw std::runtime_error("thrown by a step");
      return w.sum() * 1e6 + Diverging::training_step(batch);
    }
    int steps = 0;
  } model(1, 1);
  const auto batches = sconce::test::data().train;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  model.eval();
  CHECK_THROWS_WITH(sconce::lr_find(model, optimizer, batches, on_the_cpu), "thrown by a step");
  CHECK(model.steps == 3);
  CHECK(model.w.item<double>() == 1);
  CHECK_FALSE(model.is_training());
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.1);
  const auto refusal = [&](const sconce::LRFindOptions& options) {
    return sconce::test::error_of([&] { sconce::lr_find(model, optimizer, batches, options); });
  };
  const std::string who = "sconce::lr_find: expected ";
  CHECK(refusal({.start_lr = 0}) == who + "start_lr to be above 0, got 0");
  CHECK(refusal({.start_lr = 1, .end_lr = 1}) == who + "end_lr to be above start_lr (1), got 1");
  CHECK(refusal({.num_it = 9}) == who + "num_it to be at least 10, got 9");
  torch::nn::Sequential lazy(sconce::nn::LazyLinear(2));
  torch::optim::SGD of_lazy(lazy->parameters(), 0.1);
  CHECK_THROWS_WITH(sconce::lr_find(lazy, of_lazy, batches, on_the_cpu),
                    ContainsSubstring("uninitialized"));
}
