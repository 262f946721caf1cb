#include "train/optimization.hpp"

#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/optim/lr_scheduler.hpp"

namespace {

double rate_of(const torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

}  // namespace

TEST_CASE("a cosine is Python's") {
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
