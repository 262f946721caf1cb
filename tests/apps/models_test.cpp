#include "train/models.hpp"

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/data_parallel.hpp"

TEST_CASE("every model of sconce-train runs in replicas") {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({6, 1, 8, 8});
  for (const auto& name : train::model_names()) {
    INFO(name);
    auto model = train::make_model(name, {1, 8, 8}, 10);
    sconce::nn::DataParallel replicas(model, {.device_ids = {sconce::cpu(), sconce::cpu()}});
    model->eval();
    CHECK(torch::allclose(replicas(x), model->forward(x), 1.3e-6, 1e-5));
  }
}
