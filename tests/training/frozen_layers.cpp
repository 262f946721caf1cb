// Tests a layer that overrides `train`, as in Python, so that it stays in evaluation mode while the
// rest of its model trains.
#include "catch.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/nn/mode_guard.hpp"
#include "sconce/nn/requires_grad.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/one_with_gloo.hpp"
#include "support/points.hpp"

using sconce::Trainer;

namespace {

struct FrozenNorm : torch::nn::Cloneable<FrozenNorm> {
  FrozenNorm() { reset(); }
  void reset() override {
    norm = register_module("norm", torch::nn::BatchNorm1d(2));
    linear = register_module("linear", torch::nn::Linear(2, 2));
  }
  void train(bool on = true) override {
    Cloneable::train(on);
    norm->eval();
  }
  torch::Tensor forward(const torch::Tensor& x) {
    CHECK_FALSE(norm->is_training());
    if (is_training()) ++trainings;
    return linear->forward(norm->forward(x));
  }
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Linear linear = nullptr;
  int trainings = 0;
};

// Evaluates the model during each epoch.
struct EvaluateBetween : sconce::TrainerCallback {
  void on_after_optimizer_step(sconce::Fit& fit) override {
    if (fit.batch == 2) trainer->evaluate(*model, sconce::test::data().train);
  }
  Trainer* trainer = nullptr;
  FrozenNorm* model = nullptr;
};

// Returns whether a fit trains the linear layer and leaves the norm layer unchanged.
template <class Wrap>
bool trains_the_rest(const Wrap& wrap, const sconce::distributed::ProcessGroup& group = {}) {
  torch::manual_seed(2);
  auto model = std::make_shared<FrozenNorm>();
  sconce::nn::requires_grad_(*model->norm, false);
  auto wrapped = wrap(model);
  sconce::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.5));
  Trainer trainer({.max_epochs = 2, .num_gpus = 0, .process_group = group});
  EvaluateBetween between;
  between.trainer = &trainer;
  between.model = model.get();
  auto with = sconce::test::data();
  with.callbacks = {&between};
  const auto result = trainer.fit(wrapped, sgd, with);
  CHECK(model->is_training());
  CHECK_FALSE(model->norm->is_training());
  CHECK(model->trainings == 12);  // six batches in each epoch
  CHECK(result.epochs.back().loss < result.epochs.front().loss);
  return model->norm->running_mean.eq(0).all().item<bool>() &&
         model->norm->running_var.eq(1).all().item<bool>() &&
         model->norm->weight.eq(1).all().item<bool>();
}

}  // namespace

TEST_CASE(
    "a layer kept in eval mode by an overridden train() stays in eval mode during fits, in "
    "replicas, and on all ranks") {
  const auto itself = [](const auto& model) { return model; };
  CHECK(trains_the_rest(itself));
  const auto replicas = [](const auto& model) {
    return sconce::nn::DataParallel(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  };
  CHECK(trains_the_rest(replicas));
  const auto group = sconce::test::one_with_gloo();
  const auto rank = [&](const auto& model) {
    return sconce::nn::DistributedDataParallel(model, group);
  };
  CHECK(trains_the_rest(rank, group));
}

TEST_CASE("ModeGuard restores the modes of a module that overrides train()") {
  FrozenNorm model;
  model.train();
  {
    const sconce::nn::ModeGuard restore(model);
    model.eval();
    CHECK_FALSE(model.is_training());
  }
  CHECK(model.is_training());
  CHECK(model.linear->is_training());
  CHECK_FALSE(model.norm->is_training());
}
