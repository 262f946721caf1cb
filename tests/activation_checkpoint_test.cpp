#include "sconce/activation_checkpoint.hpp"

#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/error_of.hpp"
#include "support/live_memory.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::checkpoint;
using sconce::test::error_of;
using torch::Tensor;
using SomeTensors = std::vector<Tensor>;

namespace {

// A residual block that uses dropout and counts its forward calls.
struct CountingBlockImpl : torch::nn::Cloneable<CountingBlockImpl> {
  explicit CountingBlockImpl(int64_t features) : width(features) { reset(); }
  void reset() override {
    up = register_module("up", torch::nn::Linear(width, 4 * width));
    down = register_module("down", torch::nn::Linear(4 * width, width));
  }
  Tensor forward(const Tensor& x) {
    ++runs;
    return x + down(torch::dropout(torch::gelu(up(x)), p, is_training()));
  }
  int64_t width;
  double p = 0.3;
  int runs = 0;
  torch::nn::Linear up = nullptr;
  torch::nn::Linear down = nullptr;
};
TORCH_MODULE(CountingBlock);

std::vector<CountingBlock> some_blocks(int count, torch::Device device = torch::kCPU,
                                       int64_t width = 8) {
  torch::manual_seed(0);
  std::vector<CountingBlock> blocks;
  for (int i = 0; i < count; ++i) blocks.emplace_back(width)->to(device);
  return blocks;
}

Tensor plain(std::vector<CountingBlock>& blocks, Tensor x) {
  for (auto& block : blocks) x = block(x);
  return x;
}

Tensor checkpointed(std::vector<CountingBlock>& blocks, Tensor x) {
  for (auto& block : blocks) x = checkpoint(block, x);
  return x;
}

// Runs the blocks with nested checkpoints. The outermost checkpoint covers all blocks, the next
// checkpoint covers all blocks except the last, and so on.
Tensor nested(std::vector<CountingBlock>& blocks, const Tensor& x, size_t count) {
  if (count == 0) return x;
  const auto within = [&blocks, count](const Tensor& input) {
    return blocks[count - 1](nested(blocks, input, count - 1));
  };
  return checkpoint(within, x);
}

// Returns the output of a step, the input and parameter gradients, and the next random number.
template <class F>
SomeTensors step_of(const F& forward, torch::Device device, bool in_bf16 = false) {
  auto blocks = some_blocks(3, device);
  const auto x = torch::randn({4, 8}).to(device).requires_grad_();
  Tensor y;
  {
    const sconce::amp::AutocastGuard autocast(device.type(),
                                              {.dtype = torch::kBFloat16, .enabled = in_bf16});
    y = forward(blocks, x);
  }
  y.square().sum().backward();
  SomeTensors all = {y.detach(), x.grad(), torch::rand({2}, device)};
  for (const auto& block : blocks) {
    for (const auto& parameter : block->parameters()) all.push_back(parameter.grad());
  }
  return all;
}

void check_equal(const SomeTensors& got, const SomeTensors& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i);
    CHECK(got[i].equal(expected[i]));
  }
}

Tensor nested_whole(std::vector<CountingBlock>& blocks, const Tensor& x) {
  return nested(blocks, x, blocks.size());
}

void check_like_plain(torch::Device device) {
  for (const bool in_bf16 : {false, true}) {
    INFO((in_bf16 ? "bfloat16" : "float32"));
    const auto expected = step_of(plain, device, in_bf16);
    check_equal(step_of(checkpointed, device, in_bf16), expected);
    check_equal(step_of(nested_whole, device, in_bf16), expected);
  }
}

}  // namespace

TEST_CASE(
    "on the CPU, neither plain nor nested checkpointing changes the results or the generator's "
    "state") {
  check_like_plain(torch::kCPU);
}

TEST_CASE(
    "on a GPU, neither plain nor nested checkpointing changes the results or the generator's state",
    "[gpu]") {
  sconce::test::require_gpu();
  check_like_plain(sconce::gpu());
}

TEST_CASE("a checkpointed function runs once in the forward pass and once in each backward pass") {
  auto block = some_blocks(1)[0];
  const auto x = torch::randn({4, 8}).requires_grad_();
  const auto y = checkpoint(block, x).sum();
  CHECK(block->runs == 1);
  y.backward({}, /*retain_graph=*/true);
  CHECK(block->runs == 2);
  const auto first = x.grad().clone();
  y.backward();
  CHECK(block->runs == 3);
  CHECK(x.grad().equal(2 * first));
  {
    const torch::NoGradGuard no_grad;
    checkpoint(block, x);
  }
  CHECK(block->runs == 4);
}

TEST_CASE("recomputation stops as soon as every needed tensor has been recomputed") {
  int ends = 0;
  const auto x = torch::randn({3}).requires_grad_();
  const auto function = [&ends](const Tensor& input) {
    const auto y = input.exp() * 2;  // exp saves its result for the backward pass
    ++ends;
    return y;
  };
  checkpoint(function, x).sum().backward();
  CHECK(ends == 1);
  CHECK(x.grad().equal(x.detach().exp() * 2));
}

TEST_CASE("a checkpointed function accepts multiple inputs and can return any type") {
  const auto a = torch::randn({3}).requires_grad_();
  const auto b = torch::randn({3});
  const auto [sum, count] = checkpoint(
      [](const Tensor& x, double power, const Tensor& y, const Tensor& none) {
        return std::pair(x.pow(power) * y, none.defined() ? 1 : 2);
      },
      a, 3.0, b, Tensor());
  CHECK(count == 2);
  sum.sum().backward();
  CHECK(a.grad().allclose(3 * a.detach().square() * b));
}

TEST_CASE("second-order gradients flow through a checkpoint") {
  const auto x = torch::randn({5}).requires_grad_();
  const auto second = [&x](const Tensor& y) {
    const auto g =
        torch::autograd::grad({y.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
    return torch::autograd::grad({g.sum()}, {x})[0];
  };
  const auto function = [](const Tensor& input) { return input.sin().exp(); };
  CHECK(second(checkpoint(function, x)).equal(second(function(x))));
}

TEST_CASE("a checkpointed function can run a backward pass itself") {
  const auto function = [](const Tensor& input) {
    const auto y = input.exp();
    return torch::autograd::grad({y.sum()}, {input}, {}, true, /*create_graph=*/true)[0] * input;
  };
  const auto gradient = [&function](auto&& call) {
    const auto x = torch::linspace(0, 1, 5).requires_grad_();
    call(function, x).sum().backward();
    return x.grad();
  };
  CHECK(gradient([](auto f, const Tensor& x) {
          return checkpoint(f, x);
        }).equal(gradient([](auto f, const Tensor& x) { return f(x); })));
}

TEST_CASE("with preserve_rng_state disabled, recomputation draws new random numbers") {
  const auto x = torch::ones({1000}).requires_grad_();
  const auto drop = [](const Tensor& input) { return torch::dropout(input, 0.5, true); };
  const auto y = checkpoint({.preserve_rng_state = false}, drop, x);
  y.sum().backward();
  CHECK_FALSE(x.grad().equal(y.detach()));
  x.mutable_grad() = Tensor();
  const auto same = checkpoint(drop, x);
  same.sum().backward();
  CHECK(x.grad().equal(same.detach()));
}

TEST_CASE(
    "if recomputation saves a different tensor, backward throws an error that identifies the "
    "tensor") {
  int runs = 0;
  const auto x = torch::randn({4, 3}).requires_grad_();
  const auto error_of_second = [&](auto second) {
    runs = 0;
    const auto y = checkpoint(
        [&runs, second](const Tensor& input) {
          return runs++ == 0 ? (input.exp().exp()) : second(input);
        },
        x);
    return error_of([&y] { y.sum().backward(); });
  };
  CHECK_THAT(error_of_second([](const Tensor& input) { return input.slice(0, 1).exp(); }),
             ContainsSubstring("sconce::checkpoint: expected the second run") &&
                 ContainsSubstring("tensor 1 of shape [4, 3]") &&
                 ContainsSubstring("got shape [3, 3]"));
  CHECK_THAT(error_of_second([](const Tensor& input) { return input.to(torch::kDouble).exp(); }),
             ContainsSubstring("float on cpu, got shape [4, 3], double on cpu"));
  CHECK_THAT(error_of_second([](const Tensor& input) { return input.exp(); }),
             ContainsSubstring("to save 2 tensors (as in the first run), got 1"));
  CHECK_THAT(error_of_second([](const Tensor& input) { return input.exp().exp(); }),
             ContainsSubstring("nothing was thrown"));
}

TEST_CASE("backward reports a checkpoint input that was modified in place after the forward pass") {
  const auto x = torch::randn({3}).requires_grad_();
  const auto input = x * 1;
  const auto y = checkpoint([](const Tensor& t) { return t.exp(); }, input);
  input.add_(1);
  CHECK_THAT(error_of([&y] { y.sum().backward(); }),
             ContainsSubstring("modified by an inplace operation"));
}

TEST_CASE("after a checkpointed function throws, autograd resumes saving tensors normally") {
  const auto x = torch::randn({3}).requires_grad_();
  const auto throwing = [](const Tensor&) -> Tensor { throw std::runtime_error("planted"); };
  CHECK_THROWS_WITH(checkpoint(throwing, x), "planted");
  int runs = 0;
  const auto y = checkpoint(
      [&runs](const Tensor& input) {
        if (runs++ > 0) throw std::runtime_error("planted again");
        return input.exp();
      },
      x);
  CHECK_THROWS_WITH(y.sum().backward(), "planted again");
  x.exp().sum().backward();
  CHECK(x.grad().equal(x.detach().exp()));
  CHECK(runs == 2);
}

TEST_CASE("checkpoint rejects an autograd engine from another library") {
  using torch::autograd::Engine;
  static Engine* const before = &Engine::get_default_engine();
  torch::autograd::set_default_engine_stub(&Engine::get_base_engine);
  const auto error =
      error_of([] { checkpoint([](const Tensor& input) { return input; }, torch::ones({})); });
  torch::autograd::set_default_engine_stub([]() -> Engine& { return *before; });
  CHECK_THAT(error, ContainsSubstring("expected LibTorch's own autograd engine"));
}

TEST_CASE("checkpoints in different threads do not interfere with each other") {
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (auto& is_equal : equal) {
    threads.emplace_back([&is_equal] {
      const auto x = torch::randn({64, 8}).requires_grad_();
      const auto function = [](const Tensor& t) { return t.exp().sin().exp(); };
      is_equal = 1;
      for (int i = 0; i < 50; ++i) {
        const auto got = torch::autograd::grad({checkpoint(function, x).sum()}, {x})[0];
        if (!got.equal(torch::autograd::grad({function(x).sum()}, {x})[0])) is_equal = 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(equal == std::vector<int>(4, 1));
}

TEST_CASE("checkpointing 24 blocks reduces a step's memory use to at most a quarter") {
  const auto peak = [](auto forward) {
    auto blocks = some_blocks(24, torch::kCPU, 64);
    const auto x = torch::randn({2, 64, 64});
    const auto live = std::make_shared<sconce::test::LiveMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
    forward(blocks, x).sum().backward();
    return live->peak;
  };
  const auto parameters = 24 * (2 * 4 * 64 * 64 + 5 * 64) * static_cast<int64_t>(sizeof(float));
  const auto of_checkpointed = peak(checkpointed) - parameters;  // both include the gradients
  const auto of_plain = peak(plain) - parameters;
  INFO(of_checkpointed << " and " << of_plain << " bytes");
  CHECK(of_checkpointed > 0);
  CHECK(4 * of_checkpointed < of_plain);
}

TEST_CASE("a captured step supports activation checkpoints only if preserve_rng_state is disabled",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto run = [](auto call, bool is_captured) {
    auto block = some_blocks(1, sconce::gpu())[0];
    block->eval();
    sconce::optim::SGD optimizer(block->parameters(), torch::optim::SGDOptions(0.1));
    const sconce::CapturedStep::Step function = [&](const SomeTensors& batch) {
      optimizer.zero_grad();
      const auto loss = call(block, batch[0]).square().mean();
      loss.backward();
      optimizer.step();
      return SomeTensors{loss};
    };
    sconce::CapturedStep step(sconce::gpu(), function);
    const auto x = torch::ones({4, 8}, sconce::gpu());
    SomeTensors losses;
    for (int i = 0; i < 6; ++i) {
      losses.push_back((is_captured ? step({x}) : function({x}))[0].detach().clone());
    }
    return losses;
  };
  const auto without = [](CountingBlock& block, const Tensor& x) {
    return checkpoint({.preserve_rng_state = false}, block, x);
  };
  check_equal(run(without, true),
              run([](CountingBlock& block, const Tensor& x) { return block(x); }, false));
  CHECK_THAT(error_of([&] {
               run([](CountingBlock& b, const Tensor& x) { return checkpoint(b, x); }, true);
             }),
             ContainsSubstring("preserve_rng_state"));
}
