#include "sconce/captured_step.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include "capture/step_graph.hpp"
#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::CapturedStep;
using sconce::ShapeMismatch;
using sconce::optim::lr_scheduler::StepLR;
using sconce::test::error_of;
using StepTensors = CapturedStep::Tensors;

namespace {

constexpr float too_large = std::numeric_limits<float>::infinity();

// Contains a network, its optimizer, and all other objects that a training step uses.
struct Training {
  explicit Training(torch::Device on, double dropout = 0) : device(on) {
    torch::manual_seed(0);
    net = torch::nn::Sequential(torch::nn::Linear(6, 16), torch::nn::ReLU(),
                                torch::nn::Dropout(dropout), torch::nn::Linear(16, 3));
    net->to(device);
    lr = torch::full({}, 0.01, device);
    optimizer = std::make_unique<sconce::optim::AdamW>(
        net->parameters(), torch::optim::AdamWOptions(), sconce::optim::ExtraOptions{.lr = lr});
  }

  StepTensors step(const StepTensors& batch) {
    optimizer->zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(device.type(), {.dtype = torch::kHalf});
      loss = torch::nn::functional::cross_entropy(net->forward(batch[0]), batch[1]);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(*optimizer);
    sconce::nn::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(*optimizer);
    scaler.update();
    return {loss};
  }

  CapturedStep::Step function() {
    return [this](const StepTensors& batch) { return step(batch); };
  }

  torch::Device device;
  torch::nn::Sequential net = nullptr;
  torch::Tensor lr;
  std::unique_ptr<sconce::optim::AdamW> optimizer;
  sconce::amp::GradScaler scaler =
      sconce::amp::GradScaler({.device = device.type(), .init_scale = 1024, .growth_interval = 3});
};

std::vector<StepTensors> some_batches(torch::Device device, int count, int64_t rows = 8) {
  torch::manual_seed(1);
  std::vector<StepTensors> batches;
  for (int i = 0; i < count; ++i) {
    batches.push_back({torch::randn({rows, 6}).to(device), torch::randint(3, {rows}).to(device)});
  }
  return batches;
}

// Runs the same steps with an eager loop and with a CapturedStep, and checks that the losses and
// parameters are the same. Before each step, calls `between` for the eager loop and for the
// CapturedStep.
template <class F>
void check_like_plain_loop(const std::vector<StepTensors>& batches, torch::Device device,
                           const F& between) {
  Training plain(device);
  Training captured(device);
  CapturedStep step(device, captured.function());
  for (size_t i = 0; i < batches.size(); ++i) {
    INFO("step " << i);
    between(plain, i);
    between(captured, i);
    const auto expected = plain.step(batches[i])[0].detach().clone();
    CHECK(step(batches[i])[0].equal(expected));
  }
  CHECK(step.is_captured());
  const auto expected = plain.net->parameters();
  const auto got = captured.net->parameters();
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(expected[i]));
  CHECK(captured.scaler.get_scale() == plain.scaler.get_scale());
}

void change_nothing(Training&, size_t) {}

}  // namespace

TEST_CASE("on the CPU, a captured step matches the eager loop bit for bit") {
  check_like_plain_loop(some_batches(torch::kCPU, 6), torch::kCPU, change_nothing);
}

TEST_CASE(
    "on the CPU, a captured step reads the caller's memory directly and detaches inputs and "
    "outputs") {
  const auto x = torch::ones({2}, torch::requires_grad());
  torch::Tensor seen;
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    seen = batch[0];
    return StepTensors{batch[0] * 2, torch::Tensor()};
  });
  const auto outputs = step({x});
  CHECK(seen.is_alias_of(x));
  CHECK_FALSE(seen.requires_grad());
  CHECK_FALSE(outputs[0].requires_grad());
  CHECK(outputs[0].equal(torch::full({2}, 2.0)));
  CHECK_FALSE(outputs[1].defined());
}

TEST_CASE("a captured step disables the autocast cache and restores the previous setting") {
  for (const bool enabled : {true, false}) {
    at::autocast::set_autocast_cache_enabled(enabled);
    CapturedStep step(torch::kCPU, [](const StepTensors& batch) {
      CHECK_FALSE(at::autocast::is_autocast_cache_enabled());
      const sconce::amp::AutocastGuard autocast(torch::kCPU);
      CHECK_FALSE(at::autocast::is_autocast_cache_enabled());
      TORCH_CHECK(batch[0].numel() > 0, "an empty batch");
      return batch;
    });
    step({torch::ones({1})});
    CHECK(at::autocast::is_autocast_cache_enabled() == enabled);
    CHECK_THAT(error_of([&] { step({torch::ones({0})}); }), StartsWith("an empty batch"));
    CHECK(at::autocast::is_autocast_cache_enabled() == enabled);
  }
  at::autocast::set_autocast_cache_enabled(true);
}

TEST_CASE(
    "a batch with a different shape runs eagerly or is rejected, depending on on_shape_mismatch") {
  const auto device = sconce::try_gpu();
  const auto sum = [](const StepTensors& batch) { return StepTensors{batch[0].sum()}; };
  CapturedStep either(device, sum);
  for (const int64_t rows : {4, 2, 4, 4, 3, 4, 4, 5, 4}) {
    CHECK(either({torch::ones({rows}, device)})[0].item<int64_t>() == rows);
  }
  CHECK(either({torch::ones({4}, device), torch::ones({4}, device)})[0].item<int>() == 4);
  CHECK(either({torch::full({4}, 2, device)})[0].item<int>() == 8);

  CapturedStep one(device, sum, {.on_shape_mismatch = ShapeMismatch::error});
  one({torch::ones({4, 2})});
  CHECK_THAT(error_of([&] { one({torch::ones({3, 2})}); }),
             StartsWith("sconce::CapturedStep: expected tensor 0 in the batch to have dtype "
                        "Float and sizes [4, 2] (as in the first batch), got dtype Float and sizes "
                        "[3, 2]"));
  CHECK_THAT(error_of([&] { one({torch::ones({4, 2}, torch::kLong)}); }),
             ContainsSubstring("got dtype Long and sizes [4, 2]"));
  CHECK_THAT(
      error_of([&] { one({}); }),
      StartsWith(
          "sconce::CapturedStep: expected a batch of 1 tensors (as in the first batch), got 0"));
  CHECK(one({torch::ones({4, 2})})[0].item<int>() == 8);
}

TEST_CASE(
    "CapturedStep rejects an empty function, a warmup below 1, a missing device, and an undefined "
    "tensor") {
  const auto same = [](const StepTensors& batch) { return batch; };
  CHECK_THAT(error_of([] { CapturedStep(torch::kCPU, nullptr); }),
             StartsWith("sconce::CapturedStep: expected a step, got an empty function"));
  CHECK_THAT(error_of([&] { CapturedStep(torch::kCPU, same, {.num_warmup_iters = 0}); }),
             StartsWith("sconce::CapturedStep: expected at least 1 warmup step"));
  CHECK_THAT(error_of([&] { CapturedStep(sconce::gpu(100), same); }),
             StartsWith("sconce::CapturedStep: "));
  CHECK_THAT(
      error_of([&] { CapturedStep(torch::kCPU, same)({torch::Tensor()}); }),
      StartsWith("sconce::CapturedStep: expected a batch of tensors, got an undefined tensor"));
}

TEST_CASE("a batch does not count as the first batch if it is rejected or its step throws") {
  const auto device = sconce::try_gpu();
  const auto sum = [](const StepTensors& batch) {
    TORCH_CHECK(batch[0].dim() == 1, "expected a vector");
    return StepTensors{batch[0].sum()};
  };
  for (const auto on_shape_mismatch : {ShapeMismatch::error, ShapeMismatch::run_eagerly}) {
    CapturedStep step(device, sum, {.on_shape_mismatch = on_shape_mismatch});
    const auto good = torch::ones({4}, device);
    CHECK_THAT(error_of([&] { step({good, torch::Tensor()}); }),
               StartsWith("sconce::CapturedStep: expected a batch of tensors, got an undefined "
                          "tensor at position 2 of 2"));
    CHECK_THAT(error_of([&] { step({torch::ones({2, 3}, device)}); }),
               StartsWith("expected a vector"));
    for (int i = 0; i < 6; ++i) CHECK(step({good})[0].item<int>() == 4);
    CHECK(step.is_captured());
    CHECK_THAT(error_of([&] { step({torch::Tensor()}); }),
               StartsWith("sconce::CapturedStep: expected a batch of tensors, got an undefined "
                          "tensor at position 1 of 1"));
    CHECK(step({good})[0].item<int>() == 4);
  }
}

TEST_CASE("a step that throws does not count toward the warmup", "[gpu]") {
  sconce::test::require_gpu();
  int calls = 0;
  CapturedStep step(sconce::gpu(),
                    [&](const StepTensors& batch) {
                      TORCH_CHECK(++calls != 2, "thrown by the step");
                      return StepTensors{batch[0] + 1};
                    },
                    {.num_warmup_iters = 2});
  const auto x = torch::ones({4}, sconce::gpu());
  step({x});
  CHECK_THAT(error_of([&] { step({x}); }), StartsWith("thrown by the step"));
  step({x});
  CHECK_FALSE(step.is_captured());
  step({x});
  CHECK(step.is_captured());
}

TEST_CASE("an error thrown by a step is reported even if waiting for the step's stream fails",
          "[gpu]") {
  sconce::test::require_gpu();
  std::optional<c10::Stream> stream;
  std::unique_ptr<sconce::StepGraph> graph;
  bool fails = true;
  CapturedStep step(sconce::gpu(), [&](const StepTensors& batch) {
    if (fails) {
      stream = c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(sconce::gpu());
      graph = sconce::StepGraph::begin({});
      error_of([&] { batch[0].sum().item<float>(); });  // after this, waiting for the stream fails
      throw std::runtime_error("thrown by the step");
    }
    return StepTensors{batch[0] + 1};
  });
  const auto x = torch::ones({4}, sconce::gpu());
  CHECK_THROWS_WITH(step({x}), StartsWith("thrown by the step"));
  {
    const c10::StreamGuard guard(stream.value());
    graph.reset();
  }
  fails = false;
  for (int i = 0; i < 5; ++i) CHECK(step({x})[0].equal(x + 1));
  CHECK(step.is_captured());
}

TEST_CASE("schedulers and manually set learning rates take effect in a captured step") {
  const auto device = sconce::try_gpu();
  Training training(device);
  CapturedStep step(device, training.function());
  StepLR schedule(*training.optimizer, 4, 0.5);
  const auto batches = some_batches(device, 9);
  double expected = 0.01;
  for (size_t i = 0; i < batches.size(); ++i) {
    CHECK(training.lr.item<double>() == Catch::Approx(expected));
    step(batches[i]);
    schedule.step();
    if (i % 4 == 3) expected /= 2;
  }
  const auto before = training.net->parameters()[0].detach().clone();
  training.lr.zero_();
  step(batches[0]);
  CHECK(training.net->parameters()[0].equal(before));
  training.optimizer->param_groups()[0].options().set_lr(0.5);
  training.optimizer->write_lr();
  CHECK(training.lr.item<double>() == 0.5);
  step(batches[0]);
  CHECK_FALSE(training.net->parameters()[0].equal(before));
}

TEST_CASE("on a GPU, a captured step matches the eager loop bit for bit", "[gpu]") {
  sconce::test::require_gpu();
  check_like_plain_loop(some_batches(sconce::gpu(), 10), sconce::gpu(), change_nothing);
}

TEST_CASE("on a GPU, a captured step accepts both pinned and unpinned CPU batches", "[gpu]") {
  sconce::test::require_gpu();
  auto batches = some_batches(torch::kCPU, 8);
  for (size_t i = 0; i < batches.size(); i += 2) batches[i][0] = batches[i][0].pin_memory();
  CapturedStep step(sconce::gpu(),
                    [](const StepTensors& batch) { return StepTensors{batch[0] * 2}; });
  for (const auto& batch : batches) CHECK(step(batch)[0].cpu().equal(batch[0] * 2));
}

TEST_CASE(
    "changing a learning rate after the capture has the same effect on replays as on the eager "
    "loop",
    "[gpu]") {
  sconce::test::require_gpu();
  check_like_plain_loop(some_batches(sconce::gpu(), 10), sconce::gpu(),
                        [](Training& training, size_t i) {
                          if (i == 7) training.lr.fill_(0.1);
                        });
}

TEST_CASE("if gradients overflow, a replay skips the optimizer step and lowers the loss scale",
          "[gpu]") {
  sconce::test::require_gpu();
  auto batches = some_batches(sconce::gpu(), 10);
  batches[0][0][0][0] = too_large;
  batches[6][0][0][0] = too_large;
  Training training(sconce::gpu());
  CapturedStep step(sconce::gpu(), training.function());
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto before = training.net->parameters()[0].detach().clone();
    const double scale = training.scaler.get_scale();
    step(batches[i]);
    const bool skipped = i == 0 || i == 6;
    CHECK(training.net->parameters()[0].equal(before) == skipped);
    CHECK((training.scaler.get_scale() < scale) == skipped);
  }
}

TEST_CASE("dropout draws new numbers in each replay, matching the eager loop", "[gpu]") {
  sconce::test::require_gpu();
  const auto drop = [](const StepTensors& batch) {
    return StepTensors{torch::dropout(batch[0], 0.5, true)};
  };
  const auto x = torch::ones({1000}, sconce::gpu());
  torch::manual_seed(5);
  std::vector<torch::Tensor> expected;
  for (int i = 0; i < 7; ++i) expected.push_back(drop({x})[0]);
  torch::manual_seed(5);
  CapturedStep step(sconce::gpu(), drop);
  for (int i = 0; i < 7; ++i) CHECK(step({x})[0].equal(expected[i]));
  CHECK_FALSE(expected[5].equal(expected[6]));
}

TEST_CASE("each replay of a captured step draws new numbers from a custom generator", "[gpu]") {
  sconce::test::require_gpu();
  auto generator = at::globalContext().defaultGenerator(sconce::gpu()).clone();
  CapturedStep step(
      sconce::gpu(),
      [&](const StepTensors& batch) { return StepTensors{at::rand_like(batch[0], generator)}; },
      {.generators = {generator}});
  std::vector<torch::Tensor> drawn;
  for (int i = 0; i < 6; ++i) drawn.push_back(step({torch::ones({9}, sconce::gpu())})[0].clone());
  CHECK_FALSE(drawn[4].equal(drawn[5]));
  CHECK_FALSE(drawn[3].equal(drawn[4]));
}

TEST_CASE("if a batch between replays has a different shape, training still matches the eager loop",
          "[gpu]") {
  sconce::test::require_gpu();
  auto batches = some_batches(sconce::gpu(), 10);
  batches[1] = some_batches(sconce::gpu(), 1, 5)[0];
  batches[6] = some_batches(sconce::gpu(), 1, 3)[0];
  check_like_plain_loop(batches, sconce::gpu(), change_nothing);
}

TEST_CASE("a step that reads a value on the host is not captured and leaves the device usable",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto device = sconce::gpu();
  const auto x = torch::ones({4}, device);
  bool reads = true;
  CapturedStep step(device, [&](const StepTensors& batch) {
    const auto y = torch::dropout(batch[0] * 2, 0.5, true);
    if (reads) y.sum().item<float>();
    return StepTensors{batch[0] * 2};
  });
  for (int i = 0; i < 3; ++i) step({x});
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { step({x}); }),
               StartsWith("sconce::CapturedStep: expected a step that can be captured, got "
                          "the error: "));
    CHECK_FALSE(step.is_captured());
    CHECK(torch::ones({1 << 20}, device).sum().item<int>() == 1 << 20);
    CHECK(torch::rand({4}, device).sum().item<float>() > 0);
  }
  reads = false;
  for (int i = 0; i < 3; ++i) CHECK(step({x})[0].equal(x * 2));
  CHECK(step.is_captured());
}

TEST_CASE("a step that throws during capture ends the capture and leaves the device usable",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto x = torch::ones({4}, sconce::gpu());
  int calls = 0;
  CapturedStep step(sconce::gpu(), [&](const StepTensors& batch) {
    if (++calls == 4) throw std::runtime_error("no more");
    return StepTensors{batch[0] + 1};
  });
  for (int i = 0; i < 3; ++i) step({x});
  CHECK_THAT(error_of([&] { step({x}); }),
             StartsWith("sconce::CapturedStep: expected a step that can be captured, got the "
                        "error: no more"));
  for (int i = 0; i < 3; ++i) CHECK(step({x})[0].equal(x + 1));
  CHECK(calls == 5);
}

TEST_CASE("a replay performs no host reads and does not call the step's function", "[gpu]") {
  sconce::test::require_gpu();
  const auto batches = some_batches(sconce::gpu(), 8);
  Training training(sconce::gpu());
  int calls = 0;
  CapturedStep step(sconce::gpu(), [&](const StepTensors& batch) {
    ++calls;
    return training.step(batch);
  });
  const sconce::test::HostReads reads;
  for (const auto& batch : batches) step(batch);
  CHECK(reads.count() == 0);
  CHECK(calls == 4);  // the warmup and the capture
}

TEST_CASE("a captured step waits for the caller's stream, which then waits for the step", "[gpu]") {
  sconce::test::require_gpu();
  const c10::impl::VirtualGuardImpl guard(torch::kCUDA);
  const c10::StreamGuard stream(guard.getStreamFromGlobalPool(sconce::gpu()));
  CapturedStep step(sconce::gpu(), [](const StepTensors& batch) {
    return StepTensors{batch[0].matmul(batch[0])};
  });
  auto x = torch::eye(512, sconce::gpu());
  for (int i = 0; i < 8; ++i) {
    x = x * 2;  // enqueued but not synchronized
    CHECK((step({x})[0] - x * x).abs().max().item<float>() == 0);
    x = x / 2;
  }
}

TEST_CASE("under autocast, each replay casts the current weights", "[gpu]") {
  sconce::test::require_gpu();
  const auto weight = torch::ones({4, 4}, torch::device(sconce::gpu()).requires_grad(true));
  const auto x = torch::ones({4, 4}, sconce::gpu());
  CapturedStep step(sconce::gpu(),
                    [&](const StepTensors& batch) { return StepTensors{batch[0].matmul(weight)}; });
  const sconce::amp::AutocastGuard autocast(torch::kCUDA);
  for (int i = 1; i < 8; ++i) {
    {
      const torch::NoGradGuard no_grad;
      weight.fill_(i);
    }
    CHECK(step({x})[0].eq(4 * i).all().item<bool>());
  }
}

TEST_CASE("a captured step runs on its assigned GPU even if another GPU is current", "[gpu]") {
  sconce::test::require_gpu();
  const auto last = sconce::gpu(sconce::num_gpus() - 1);
  const c10::impl::VirtualGuardImpl guard(torch::kCUDA);
  std::vector<torch::Device> current;
  CapturedStep step(last, [&](const StepTensors& batch) {
    current.push_back(guard.getDevice());
    return StepTensors{batch[0] + torch::rand({4}, torch::kCUDA)};
  });
  for (int i = 0; i < 6; ++i) {
    const auto sum = step({torch::ones({4})})[0];
    CHECK(sum.device() == last);
    CHECK(sum.ge(1).all().item<bool>());
  }
  CHECK(current == std::vector(4, last));
  CHECK(guard.getDevice() == sconce::gpu());
}

TEST_CASE("another thread may pin memory while a step is being captured", "[gpu]") {
  sconce::test::require_gpu();
  int64_t size = 1 << 20;
  CapturedStep step(sconce::gpu(), [&](const StepTensors& batch) {
    size *= 2;  // no pinned memory of this size exists yet
    std::async(std::launch::async, [&] { return torch::ones({size}).pin_memory(); }).get();
    return StepTensors{batch[0] * 2};
  });
  const auto ones = torch::ones({4}, sconce::gpu());
  for (int i = 0; i < 6; ++i) CHECK(step({ones})[0].eq(2).all().item<bool>());
}

TEST_CASE("memory that a captured step allocates can be reused after the step is destroyed",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto device = sconce::gpu();
  const c10::impl::VirtualGuardImpl guard(torch::kCUDA);
  torch::Tensor state;  // created by the first step, on the warmup stream
  {
    CapturedStep step(device, [&](const StepTensors& batch) {
      if (!state.defined()) state = torch::zeros_like(batch[0]);
      return StepTensors{state.add_(batch[0]).clone()};
    });
    const auto ones = torch::ones({64}, device);
    for (int i = 0; i < 6; ++i) step({ones});
  }
  const void* const address = state.const_data_ptr();
  state.reset();
  bool is_used_again = false;
  for (int i = 0; i < 32; ++i) {  // cycles through all streams in the pool
    const c10::StreamGuard stream(guard.getStreamFromGlobalPool(device));
    is_used_again |= torch::zeros({64}, device).const_data_ptr() == address;
  }
  CHECK(is_used_again);
}

TEST_CASE(
    "for GPU parameters only, is_capturable requires fused kernels and a learning rate tensor on "
    "the GPU") {
  const std::vector<torch::Tensor> on_cpu = {torch::ones({2}, torch::requires_grad())};
  const auto lr = torch::full({}, 0.1);
  CHECK(sconce::optim::SGD(on_cpu, 0.1).is_capturable());
  CHECK(sconce::optim::SGD(on_cpu, 0.1, {.lr = lr}).is_capturable());
  const sconce::optim::ExtraOptions foreach = {.kernels = sconce::optim::Kernels::foreach};
  CHECK(sconce::optim::SGD(on_cpu, 0.1, foreach).is_capturable());
  if (sconce::num_gpus() == 0) return;
  const std::vector<torch::Tensor> on_gpu = {
      torch::ones({2}, torch::device(sconce::gpu()).requires_grad(true))};
  CHECK_FALSE(sconce::optim::SGD(on_gpu, 0.1).is_capturable());
  CHECK_FALSE(sconce::optim::SGD(on_gpu, 0.1, {.lr = lr}).is_capturable());
  CHECK(sconce::optim::SGD(on_gpu, 0.1, {.lr = lr.to(sconce::gpu())}).is_capturable());
  CHECK_FALSE(
      sconce::optim::SGD(on_gpu, 0.1,
                         {.kernels = sconce::optim::Kernels::foreach, .lr = lr.to(sconce::gpu())})
          .is_capturable());
}
