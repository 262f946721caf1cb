#include "train/optimization.hpp"

#include <torch/torch.h>

#include <numbers>

#include "catch.hpp"
#include "sconce/optim/lr_scheduler.hpp"

namespace {

double rate_of(const torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

}  // namespace

TEST_CASE("a cosine is Python's, and that of a run resumed for more epochs ends with them") {
  const std::vector<torch::Tensor> params = {torch::ones({1})};
  torch::optim::SGD sgd(params, 0.05), reference(params, 0.05), resumed(params, 0.05);
  const auto schedule = train::make_schedule("cosine", sgd, 10, 1).scheduler;
  sconce::optim::lr_scheduler::CosineAnnealingLR python(reference, 10);
  for (int epoch = 0; epoch < 10; ++epoch) {
    CHECK(rate_of(sgd) == Catch::Approx(rate_of(reference)));
    schedule->step();
    python.step();
  }
  CHECK(rate_of(sgd) == 0);

  const auto longer = train::make_schedule("cosine", resumed, 20, 1).scheduler;
  longer->load_state_dict(schedule->state_dict());
  longer->step();
  CHECK(rate_of(resumed) == Catch::Approx(0.05 * (1 + std::cos(std::numbers::pi * 11 / 20)) / 2));
  for (int epoch = 11; epoch < 20; ++epoch) longer->step();
  CHECK(rate_of(resumed) == 0);
}
