#include "sconce/amp/mixed_precision.hpp"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::amp::MixedPrecision;

TEST_CASE("MixedPrecision enables autocast only within its scope, and the scaler only for fp16") {
  using sconce::amp::Precision;
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  MixedPrecision of_loop(precision, torch::kCPU);
  CHECK(of_loop.precision() == precision);
  CHECK(of_loop.scaler().is_enabled() == (precision == Precision::fp16));
  {
    const auto autocast = of_loop.autocast();
    CHECK(at::autocast::is_autocast_enabled(at::kCPU) == (precision != Precision::fp32));
    const auto y = torch::mm(torch::ones({2, 2}), torch::ones({2, 2}));
    const auto expected = precision == Precision::fp32   ? torch::kFloat
                          : precision == Precision::bf16 ? torch::kBFloat16
                                                         : torch::kHalf;
    CHECK(y.scalar_type() == expected);
  }
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("with Precision::fp32, autocast inside the model uses the dtype set for the device") {
  using sconce::amp::AutocastGuard;
  const auto type_of = [](const torch::Device& device) {
    return at::autocast::get_autocast_dtype(device.type());
  };
  const AutocastGuard outer(torch::kCPU, {.dtype = torch::kHalf});
  for (const auto& device : {sconce::cpu(), sconce::gpu()}) {
    const auto scope = MixedPrecision(sconce::amp::Precision::fp32, device).autocast();
    CHECK(type_of(device) == torch::kHalf);
  }
  const auto scope = MixedPrecision(sconce::amp::Precision::fp32, torch::kCPU).autocast();
  const AutocastGuard own(torch::kCPU);
  CHECK(torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type() == torch::kHalf);
}

TEST_CASE("a custom loop with MixedPrecision matches a loop with AutocastGuard and GradScaler") {
  using sconce::amp::Precision;
  const auto train = [](const auto& step) {
    torch::manual_seed(1);
    torch::nn::Linear net(4, 1);
    sconce::optim::SGD optimizer(net->parameters(), 0.1);
    const auto x = torch::randn({8, 4});
    for (int i = 0; i < 4; ++i) {
      optimizer.zero_grad();
      step(optimizer, [&] { return net->forward(x).square().mean(); });
    }
    return net->weight.detach();
  };
  MixedPrecision precision(Precision::fp16, torch::kCPU);
  const auto a = train([&](auto& optimizer, const auto& loss_of) {
    torch::Tensor loss;
    {
      const auto autocast = precision.autocast();
      loss = loss_of();
    }
    precision.scale(loss).backward();
    precision.unscale_(optimizer);
    sconce::nn::clip_grad_norm_(optimizer.parameters(), 0.5);
    precision.step(optimizer);
  });
  sconce::amp::GradScaler scaler({.device = torch::kCPU});
  const auto b = train([&](auto& optimizer, const auto& loss_of) {
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kHalf});
      loss = loss_of();
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    sconce::nn::clip_grad_norm_(optimizer.parameters(), 0.5);
    scaler.step(optimizer);
    scaler.update();
  });
  CHECK(a.equal(b));
  CHECK(precision.scaler().get_scale() == scaler.get_scale());
}

TEST_CASE("amp::Precision and metrics::Precision can be used together") {
  using namespace sconce;
  using namespace sconce::metrics;
  const Precision metric({.num_classes = 2, .average = Average::macro});
  const TrainerOptions options = {.num_gpus = 0, .precision = amp::Precision::bf16};
  CHECK(options.precision == amp::Precision::bf16);
  CHECK(metric.sums().eq(0).all().item<bool>());
}

TEST_CASE("Precision::tf32 is rejected without a GPU") {
  using sconce::amp::Precision;
  CHECK_THROWS_WITH(MixedPrecision(Precision::tf32, torch::kCPU),
                    ContainsSubstring("expected a GPU for Precision::tf32, got cpu"));
}

TEST_CASE("Precision::tf32 enables TF32 only while its settings are in scope", "[gpu]") {
  using sconce::amp::Precision;
  sconce::test::require_gpu();
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowTF32CuDNN(false);
  MixedPrecision precision(Precision::tf32, sconce::gpu());
  {
    const auto settings = precision.flags();
    CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGH);
    CHECK(at::globalContext().allowTF32CuDNN());
  }
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
}
