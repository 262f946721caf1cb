#include "train/optimization.hpp"

#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"

namespace {

double rate_of(const torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

}  // namespace

TEST_CASE("sconce-train's cosine schedule matches CosineAnnealingLR") {
  const std::vector<torch::Tensor> params = {torch::ones({1})};
  torch::optim::SGD sgd(params, 0.05), reference(params, 0.05);
  const auto schedule = train::make_schedule("cosine", sgd, 10, 10).scheduler;
  sconce::optim::lr_scheduler::CosineAnnealingLR python(reference, 10);
  for (int epoch = 0; epoch < 10; ++epoch) {
    CHECK(rate_of(sgd) == Catch::Approx(rate_of(reference)));
    schedule->step();
    python.step();
  }
  CHECK(rate_of(sgd) == 0);
}

TEST_CASE("optimizers created by name use Python's default learning rates, except for sgd") {
  const std::vector<torch::Tensor> params = {torch::ones({1}).requires_grad_()};
  const std::map<std::string, double> defaults = {{"sgd", 0.05},
                                                  {"adam", torch::optim::AdamOptions().lr()},
                                                  {"adamw", torch::optim::AdamWOptions().lr()},
                                                  {"adagrad", torch::optim::AdagradOptions().lr()},
                                                  {"rmsprop", torch::optim::RMSpropOptions().lr()},
                                                  {"nadam", sconce::optim::NAdamOptions().lr()},
                                                  {"adadelta", 1.0},
                                                  {"adamax", 0.002}};
  CHECK(train::optimizer_names().size() == defaults.size());
  for (const auto& name : train::optimizer_names()) {
    INFO(name);
    CHECK(train::default_lr(name) == defaults.at(name));
    for (const auto& scheduler : train::scheduler_names()) {
      const auto optimizer = train::make_optimizer(name, params, 0.1);
      const auto schedule = train::make_schedule(scheduler, *optimizer, 3, 9);
      params[0].mutable_grad() = torch::ones({1});
      optimizer->step();
      if (schedule.scheduler) schedule.scheduler->step();
    }
  }
  CHECK(params[0].item<float>() < 1);
}

TEST_CASE("every sconce-train optimizer trains a network with its default learning rate") {
  for (const auto& name : train::optimizer_names()) {
    INFO(name);
    torch::manual_seed(0);
    torch::nn::Sequential net(torch::nn::Linear(2, 32), torch::nn::ReLU(),
                              torch::nn::Linear(32, 2));
    const auto x = torch::randn({256, 2});
    const auto inside = (x.square().sum(1) < 1).to(torch::kLong);  // not linearly separable
    const auto optimizer = train::make_optimizer(name, net->parameters(), train::default_lr(name));
    for (int step = 0; step < 600; ++step) {
      optimizer->zero_grad();
      torch::cross_entropy_loss(net->forward(x), inside).backward();
      optimizer->step();
    }
    const auto right = net->forward(x).argmax(1).eq(inside).to(torch::kFloat).mean();
    CHECK(right.item<double>() > 0.95);
  }
}
