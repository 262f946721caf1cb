// Tests captured steps on the CPU, where each step is recorded and then replayed. The behavior that
// CPU captures share with CUDA graphs is tested in tests/captured_step_test.cpp.

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/torch.h>

#include <future>
#include <limits>
#include <memory>
#include <thread>

#include "catch.hpp"
#include "sconce/activation_checkpoint.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/error_of.hpp"
#include "support/live_memory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::CapturedStep;
using sconce::test::error_of;
using StepTensors = CapturedStep::Tensors;

namespace {

// Contains a layer, its optimizer, and a count of the steps whose host code ran.
struct Fit {
  Fit() {
    torch::manual_seed(0);
    layer = torch::nn::Linear(3, 2);
    optimizer = std::make_unique<sconce::optim::SGD>(layer->parameters(),
                                                     torch::optim::SGDOptions(0.1).momentum(0.9));
  }

  StepTensors step(const StepTensors& batch) {
    ++host_runs;
    optimizer->zero_grad();
    const auto loss = layer->forward(batch[0]).square().mean();
    loss.backward();
    optimizer->step();
    return {loss};
  }

  CapturedStep::Step function() {
    return [this](const StepTensors& batch) { return step(batch); };
  }

  torch::nn::Linear layer = nullptr;
  std::unique_ptr<sconce::optim::SGD> optimizer;
  int host_runs = 0;
};

StepTensors some_batch(int64_t seed) {
  torch::manual_seed(seed);
  return {torch::randn({4, 3})};
}

void check_equal(const Fit& a, const Fit& b) {
  CHECK(a.layer->weight.equal(b.layer->weight));
  CHECK(a.layer->bias.equal(b.layer->bias));
  CHECK(a.layer->weight.grad().equal(b.layer->weight.grad()));
}

// Runs ten captured and ten eager steps, calls `between` before each one, and expects the same
// results. Returns the number of captured steps whose host code ran.
template <class F>
int check_like_plain_loop(const F& between) {
  Fit plain, captured;
  CapturedStep step(torch::kCPU, captured.function());
  for (int i = 0; i < 10; ++i) {
    INFO("step " << i);
    between(plain, i);
    between(captured, i);
    const auto expected = plain.step(some_batch(i))[0].detach();
    CHECK(step(some_batch(i))[0].equal(expected));
    check_equal(captured, plain);
  }
  return captured.host_runs;
}

// Expects the first call after the warmup to reject the step for `reason` before any of the step's
// code runs.
void check_refused(const CapturedStep::Step& step, const std::string& reason) {
  INFO(reason);
  int host_runs = 0;
  const auto counted = [&](const StepTensors& batch) {
    ++host_runs;
    return step(batch);
  };
  CapturedStep captured(torch::kCPU, counted, {.num_warmup_iters = 2});
  const StepTensors batch = {torch::ones({4, 4})};
  captured(batch);
  captured(batch);
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { captured(batch); }),
               StartsWith("sconce::CapturedStep: expected a step that can be captured, got one "
                          "with " +
                          reason));
  }
  CHECK(host_runs == 2);
  CHECK_FALSE(captured.is_captured());
  CHECK(step(batch).size() == 1);
}

}  // namespace

TEST_CASE("on the CPU, a captured step's host code runs only during warmup and capture") {
  CHECK(check_like_plain_loop([](Fit&, int) {}) == 4);
}

TEST_CASE("on the CPU, changes to optimizer options take effect in replays") {
  const int host_runs = check_like_plain_loop([](Fit& fit, int i) {
    auto& options =
        static_cast<torch::optim::SGDOptions&>(fit.optimizer->param_groups()[0].options());
    if (i == 5) options.lr(0.03);
    if (i == 6) options.momentum(0.5);
    if (i == 7) options.weight_decay(0.1);
    if (i == 8) options.nesterov(true);
  });
  CHECK(host_runs == 4);
}

TEST_CASE("replays use a state dict that was loaded after the capture") {
  const int host_runs = check_like_plain_loop([](Fit& fit, int i) {
    if (i != 6) return;
    Fit other;
    for (int k = 0; k < 3; ++k) other.step(some_batch(50 + k));
    fit.optimizer->load_state_dict(other.optimizer->state_dict());
    const torch::NoGradGuard no_grad;
    fit.layer->weight.copy_(other.layer->weight);
  });
  CHECK(host_runs == 4);
}

TEST_CASE("a step is captured again after parameters are moved or frozen or their strides change") {
  const auto change = GENERATE(0, 1, 2);
  const int host_runs = check_like_plain_loop([&](Fit& fit, int i) {
    if (i != 6) return;
    auto& weight = fit.layer->weight;
    const torch::NoGradGuard no_grad;
    if (change == 0) weight.set_data(weight.clone());
    if (change == 1) fit.layer->bias.requires_grad_(false);
    if (change == 2) weight.set_data(weight.t().contiguous().t());
  });
  CHECK(host_runs == (change == 0 ? 5 : 6));  // another recording must have the same operators
}

TEST_CASE(
    "gradients match the eager loop even if they are cleared or accumulated outside the step") {
  Fit plain, captured;
  const auto backward = [](Fit& fit, const StepTensors& batch) {
    ++fit.host_runs;
    const auto loss = fit.layer->forward(batch[0]).square().mean();
    loss.backward();
    return StepTensors{loss};
  };
  const auto update = [](Fit& fit, int i) {
    if (i % 3 != 2) return;
    fit.optimizer->step();
    fit.optimizer->zero_grad();
  };
  CapturedStep step(torch::kCPU,
                    [&](const StepTensors& batch) { return backward(captured, batch); });
  for (int i = 0; i < 21; ++i) {
    INFO("step " << i);
    const auto expected = backward(plain, some_batch(i))[0].detach();
    CHECK(step(some_batch(i))[0].equal(expected));
    check_equal(captured, plain);
    update(plain, i);
    update(captured, i);
    CHECK(captured.layer->weight.equal(plain.layer->weight));
  }
  // The host code runs during the warmup, during two recordings without gradients, and during two
  // recordings with gradients. The second capture without gradients reuses the memory of the first
  // capture, so the capture with gradients is repeated.
  CHECK(captured.host_runs == 7);
}

TEST_CASE("a replay also clears the gradients of parameters that the step does not use") {
  Fit plain, captured;
  const auto other = torch::ones({2}, torch::requires_grad());
  plain.optimizer->add_param_group({{other.detach().clone().requires_grad_()}});
  captured.optimizer->add_param_group({{other}});
  CapturedStep step(torch::kCPU, captured.function());
  for (int i = 0; i < 8; ++i) {
    for (auto* fit : {&plain, &captured}) {
      auto& parameter = fit->optimizer->param_groups()[1].params()[0];
      parameter.mutable_grad() = torch::ones({2});
    }
    plain.step(some_batch(i));
    step(some_batch(i));
    CHECK(other.equal(torch::ones({2})));
    CHECK_FALSE(other.grad().defined());
  }
  CHECK(captured.host_runs == 4);
}

TEST_CASE("replays update parameter averages and their update counts") {
  Fit plain, captured;
  sconce::optim::ExponentialMovingAverage of_plain(*plain.layer), of_captured(*captured.layer);
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    auto outputs = captured.step(batch);
    of_captured.update();
    return outputs;
  });
  for (int i = 0; i < 8; ++i) {
    plain.step(some_batch(i));
    of_plain.update();
    step(some_batch(i));
  }
  const auto expected = of_plain.state_dict();
  for (const auto& item : of_captured.state_dict()) {
    CHECK(item.value().equal(expected[item.key()]));
  }
}

TEST_CASE(
    "a captured step throws before running an operation that it cannot replay, and the error names "
    "the operation") {
  check_refused(
      [](const StepTensors& batch) { return StepTensors{batch[0] * batch[0].sum().item<float>()}; },
      "a host read (aten::_local_scalar_dense)");
  check_refused(
      [](const StepTensors& batch) { return StepTensors{batch[0].masked_select(batch[0] > 0)}; },
      "a data-dependent shape (aten::masked_select)");
  check_refused(
      [](const StepTensors& batch) { return StepTensors{batch[0].to_sparse().to_dense()}; },
      "a sparse tensor (aten::_to_sparse)");
  check_refused(
      [](const StepTensors& batch) {
        torch::Tensor twice;
        const at::ThreadLocalState state;
        std::thread([&] {
          const at::ThreadLocalStateGuard guard(state);
          twice = batch[0] * 2;
        }).join();
        return StepTensors{twice};
      },
      "operators in another thread");
  check_refused(
      [](const StepTensors& batch) {
        const auto x = batch[0].detach().clone().requires_grad_();
        const auto y = sconce::checkpoint(
            [](const torch::Tensor& given) { return torch::dropout(given, 0.5, true); }, x);
        y.sum().backward();
        return StepTensors{y.detach()};
      },
      "a checkpoint that restores a generator");
  check_refused(
      [](const StepTensors& batch) {
        std::vector<float> weights = {1, 2, 3, 4};
        return StepTensors{batch[0] * torch::from_blob(weights.data(), {4})};
      },
      "host memory wrapped by a tensor within the step (from_blob)");
}

TEST_CASE("replays read the current values of the host memory that a from_blob tensor wraps") {
  std::vector<float> weights = {1, 2, 3, 4};
  const auto of_host = torch::from_blob(weights.data(), {4});
  CapturedStep step(torch::kCPU,
                    [&](const StepTensors& batch) { return StepTensors{batch[0] * of_host}; });
  for (int i = 0; i < 8; ++i) {
    weights[0] = static_cast<float>(i);  // a replay reads it again
    CHECK(step({torch::ones({4, 4})})[0][0][0].item<float>() == static_cast<float>(i));
  }
  CHECK(step.is_captured());
}

TEST_CASE("a step can call requires_grad_ on its batch without changing the caller's tensor") {
  const auto weight = torch::ones({3}, torch::requires_grad());
  CapturedStep step(torch::kCPU, [](const StepTensors& batch) {
    const auto x = batch[0].requires_grad_();
    (x * x).sum().backward();
    return StepTensors{x.grad()};
  });
  for (int i = 0; i < 8; ++i) {
    INFO("step " << i);
    const auto batch = some_batch(i)[0];
    CHECK(step({batch})[0].equal(batch * 2));
    CHECK_FALSE(batch.requires_grad());
    CHECK(step({batch * weight})[0].equal(batch * 2));
    CHECK_FALSE(weight.grad().defined());
  }
  CHECK(step.is_captured());
}

TEST_CASE(
    "a captured step accepts a constant list of numbers and rejects a list that changes between "
    "steps") {
  for (const bool stays : {true, false}) {
    int steps = 0;
    CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
      ++steps;
      const auto y = batch[0].clone();
      at::_foreach_mul_({y}, std::vector<at::Scalar>{1.0 / (stays ? 2 : steps)});
      return StepTensors{y * c10::complex<double>(0, stays ? 1 : steps)};
    });
    std::string error = "nothing was thrown";
    for (int i = 0; i < 8 && error == "nothing was thrown"; ++i) {
      error = error_of([&] { step(some_batch(i)); });
    }
    CHECK(step.is_captured() == stays);
    CHECK_THAT(error, stays ? ContainsSubstring("nothing was thrown")
                            : ContainsSubstring("aten::_foreach_mul_"));
  }
}

TEST_CASE(
    "a captured step rejects scalars that the host recomputes in each step, and the error names "
    "the operator") {
  // LibTorch's own Adam counts its steps on the host and creates its state in the first step.
  const auto warmup = GENERATE(1, 2, 3);
  INFO("warmup " << warmup);
  struct HostCount {
    StepTensors step(const StepTensors& batch) {
      optimizer.zero_grad();
      const auto loss = layer->forward(batch[0]).mean();
      loss.backward();
      optimizer.step();
      return {loss};
    }

    torch::nn::Linear layer = Fit().layer;
    torch::optim::Adam optimizer{layer->parameters()};
  };
  HostCount plain, captured;
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) { return captured.step(batch); },
                    {.num_warmup_iters = warmup});
  std::string error;
  for (int i = 0; i < 8; ++i) {
    error = error_of([&] { step(some_batch(i)); });
    if (error != "nothing was thrown") break;
    plain.step(some_batch(i));
    CHECK(captured.layer->weight.equal(plain.layer->weight));
  }
  CHECK_THAT(error, ContainsSubstring("got one with host values that change from step to step ("));
  CHECK(captured.layer->weight.equal(plain.layer->weight));
  CHECK_FALSE(step.is_captured());
}

TEST_CASE("a step whose first call does more work than later calls is recorded again") {
  Fit plain, fit;
  torch::Tensor made;
  CapturedStep step(torch::kCPU,
                    [&](const StepTensors& batch) {
                      if (!made.defined()) made = torch::zeros({3});
                      return fit.step({batch[0] + made});
                    },
                    {.num_warmup_iters = 1});
  for (int i = 0; i < 8; ++i) {
    CHECK(step(some_batch(i))[0].equal(plain.step(some_batch(i))[0]));
    CHECK(step.is_captured() == (i >= 2));
  }
  CHECK(fit.host_runs == 3);
}

TEST_CASE("a step whose parameters change size is captured again") {
  struct Plain {
    StepTensors step(const StepTensors& batch) {
      ++host_runs;
      const auto loss = layer->forward(batch[0]).square().mean();
      layer->zero_grad();
      loss.backward();
      const torch::NoGradGuard no_grad;
      for (auto& parameter : layer->parameters()) parameter.sub_(parameter.grad(), 0.1);
      return {loss};
    }
    void resize(int64_t outputs) {
      torch::manual_seed(7);
      for (auto& parameter : layer->parameters()) {
        auto sizes = parameter.sizes().vec();
        sizes[0] = outputs;
        parameter.mutable_grad().reset();
        parameter.set_data(torch::randn(sizes));
      }
    }

    torch::nn::Linear layer = Fit().layer;
    int host_runs = 0;
  };
  Plain plain, captured;
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) { return captured.step(batch); });
  for (int i = 0; i < 16; ++i) {
    INFO("step " << i);
    if (i == 6 || i == 11) {
      plain.resize(i);
      captured.resize(i);
    }
    CHECK(step(some_batch(i))[0].equal(plain.step(some_batch(i))[0]));
    CHECK(captured.layer->weight.equal(plain.layer->weight));
  }
  CHECK(captured.host_runs == 4 + 2 + 2);
}

TEST_CASE(
    "repeated casts match the eager loop even if the tensors are modified between the casts") {
  torch::nn::BatchNorm1d norm(3);
  const auto weight = torch::ones({3});
  const auto run = [](const torch::Tensor& x, torch::nn::BatchNorm1d layer, torch::Tensor w) {
    const auto half = torch::kBFloat16;
    const auto before = layer->running_mean.to(half), first = w.to(half);
    const auto y = layer->forward(x);
    const auto after = layer->running_mean.to(half);  // the layer has modified it silently
    w.view({3}).add_(0.5);
    auto written = w.to(half);
    const auto kept = w.to(half), other = w.to(half);
    written.mul_(3);
    return StepTensors{before + 2 * after, first + 2 * written + 4 * kept, other, y.detach()};
  };
  torch::nn::BatchNorm1d of_plain(3);
  const auto of_plain_weight = weight.clone();
  CapturedStep step(torch::kCPU,
                    [&](const StepTensors& batch) { return run(batch[0], norm, weight); });
  for (int i = 0; i < 8; ++i) {
    INFO("step " << i);
    const auto found = step(some_batch(i));
    const auto expected = run(some_batch(i)[0], of_plain, of_plain_weight);
    for (size_t k = 0; k < expected.size(); ++k) CHECK(found[k].equal(expected[k]));
  }
  CHECK(step.is_captured());
}

TEST_CASE(
    "a replay that writes to a tensor counts as an in-place operation in the caller's autograd "
    "graph") {
  const auto weight = torch::ones({4, 3});
  CapturedStep step(torch::kCPU,
                    [&](const StepTensors& batch) { return StepTensors{weight.add_(batch[0])}; });
  for (int i = 0; i < 5; ++i) step(some_batch(i));
  const auto y = (torch::ones({4, 3}, torch::requires_grad()) * weight).sum();
  step(some_batch(5));
  CHECK_THAT(error_of([&] { y.backward(); }),
             ContainsSubstring("modified by an inplace operation"));
}

TEST_CASE("replays update buffers and running sums that are stored outside the step") {
  torch::nn::BatchNorm1d norm(3);
  const auto sum = torch::zeros({});
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    const auto y = norm->forward(batch[0]).square().sum();
    sum.add_(y.detach());
    return StepTensors{y};
  });
  torch::nn::BatchNorm1d plain(3);
  const auto expected = torch::zeros({});
  for (int i = 0; i < 8; ++i) {
    step(some_batch(i));
    expected.add_(plain->forward(some_batch(i)[0]).square().sum().detach());
  }
  CHECK(step.is_captured());
  CHECK(sum.equal(expected));
  CHECK(norm->running_mean.equal(plain->running_mean));
  CHECK(norm->running_var.equal(plain->running_var));
  CHECK(norm->num_batches_tracked.item<int>() == 8);
}

TEST_CASE(
    "replays recreate tensors from host constants and run kernels that LibTorch calls internally") {
  CapturedStep step(torch::kCPU, [](const StepTensors& batch) {
    const auto scale = torch::tensor({1.0F, 2.0F, 3.0F});
    return StepTensors{torch::max_pool1d(batch[0] * 1 + scale, 2), torch::max_pool1d(batch[0], 2)};
  });
  for (int i = 0; i < 7; ++i) {
    const auto x = some_batch(i)[0];
    const auto outputs = step({x});
    CHECK(outputs[0].equal(torch::max_pool1d(x * 1 + torch::tensor({1.0F, 2.0F, 3.0F}), 2)));
    CHECK(outputs[1].equal(torch::max_pool1d(x, 2)));
  }
  CHECK(step.is_captured());
}

TEST_CASE(
    "a captured step can end or run host code right after a result is freed and memory of the same "
    "size is allocated") {
  const auto x = torch::randn({1 << 9, 1 << 10});  // too large for replays to keep the results
  for (const bool calls_host : {false, true}) {
    CAPTURE(calls_host);
    Fit fit;
    CapturedStep captured(torch::kCPU, [&](const StepTensors& batch) {
      ++fit.host_runs;
      const auto sum = batch[0].sum();
      torch::empty_like(batch[0] * 2);
      if (calls_host) fit.optimizer->step();
      return StepTensors{sum};
    });
    for (int i = 0; i < 8; ++i) CHECK(torch::equal(captured({x + i})[0], (x + i).sum()));
    CHECK(captured.is_captured());
    CHECK(fit.host_runs < 8);
  }
}

TEST_CASE("a step can return its input, a view of its input, or nothing") {
  int host_runs = 0;
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    ++host_runs;
    return StepTensors{batch[0], batch[0][1], torch::Tensor()};
  });
  CapturedStep nothing(torch::kCPU, [&](const StepTensors&) { return StepTensors{}; });
  for (int i = 0; i < 7; ++i) {
    const auto x = some_batch(i)[0];
    const auto outputs = step({x});
    CHECK(outputs[0].equal(x));
    CHECK(outputs[1].equal(x[1]));
    CHECK_FALSE(outputs[2].defined());
    CHECK(nothing({x}).empty());
  }
  CHECK(host_runs == 4);
}

TEST_CASE(
    "a captured step inside another captured step is rejected, and the inner step remains usable") {
  CapturedStep inner(torch::kCPU,
                     [](const StepTensors& batch) { return StepTensors{batch[0] * 2}; });
  CapturedStep outer(torch::kCPU, [&](const StepTensors& batch) { return inner(batch); },
                     {.num_warmup_iters = 1});
  const auto x = torch::ones({2});
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(
        error_of([&] { outer({x}); }),
        StartsWith("sconce::CapturedStep: expected no captured step inside another captured step"));
  }
  for (int i = 0; i < 6; ++i) CHECK(inner({x})[0].equal(x * 2));
}

TEST_CASE("a replay throws if the model has been destroyed") {
  auto fit = std::make_unique<Fit>();
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) { return fit->step(batch); });
  for (int i = 0; i < 5; ++i) step(some_batch(i));
  fit.reset();
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { step(some_batch(5)); }),
               StartsWith("sconce::CapturedStep: expected the parameters used during the "
                          "capture, got a parameter that no longer exists"));
  }
}

TEST_CASE(
    "an exception in a recorded or replayed step reaches the caller, and later calls still work") {
  const auto throwing_call = GENERATE(1, 3, 4);
  int calls = 0;
  Fit plain, fit;
  CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    TORCH_CHECK(++calls != throwing_call, "thrown by the step");
    return fit.step(batch);
  });
  for (int i = 1; i <= 8; ++i) {
    if (i == throwing_call) {
      CHECK_THAT(error_of([&] { step(some_batch(i)); }), StartsWith("thrown by the step"));
    } else {
      CHECK(step(some_batch(i))[0].equal(plain.step(some_batch(i))[0]));
    }
  }
  CHECK(step.is_captured());
  // The operator detects an out-of-range index during the replay.
  CapturedStep pick(torch::kCPU, [](const StepTensors& batch) {
    return StepTensors{torch::arange(4).index_select(0, batch[0])};
  });
  for (int i = 0; i < 6; ++i) pick({torch::tensor({1, 2})});
  CHECK_THAT(error_of([&] { pick({torch::tensor({1, 7})}); }), ContainsSubstring("out of range"));
  CHECK(pick({torch::tensor({3, 0})})[0].equal(torch::tensor({3, 0})));
}

TEST_CASE("two threads can each capture and replay a step") {
  const auto train = [] {
    Fit fit;
    CapturedStep step(torch::kCPU, fit.function());
    const auto x = torch::linspace(-1, 1, 12).view({4, 3});
    for (int i = 0; i < 200; ++i) step({x + i});
    CHECK(step.is_captured());
    return fit.layer->weight.detach();
  };
  auto other = std::async(std::launch::async, train);
  const auto weight = train();
  CHECK(other.get().sizes() == weight.sizes());
}

TEST_CASE(
    "replays use the grad mode that was active during capture and do not change the thread's grad "
    "mode") {
  torch::nn::LSTM layer(2, 3);  // its kernel may save tensors for the backward pass
  const torch::NoGradGuard no_grad;
  const auto run = [&](const StepTensors& batch) {
    const torch::AutoGradMode grad(true);
    for (auto& parameter : layer->parameters()) parameter.mutable_grad().reset();
    const auto loss = std::get<0>(layer->forward(batch[0])).sum();
    loss.backward();
    return StepTensors{loss.detach(), layer->parameters()[0].grad()};
  };
  CapturedStep step(torch::kCPU, run);
  for (int i = 0; i < 6; ++i) {
    const auto expected = run({torch::ones({4, 1, 2})});
    const auto outputs = step({torch::ones({4, 1, 2})});
    CHECK(outputs[0].equal(expected[0]));
    CHECK(outputs[1].equal(expected[1]));
    CHECK_FALSE(torch::GradMode::is_enabled());
    CHECK_FALSE(torch::ones({2}, torch::requires_grad()).mul(2).requires_grad());
  }
}

TEST_CASE("on the CPU, a step runs eagerly if another library uses the Fake dispatch key",
          "[alone]") {
  const auto registration = c10::Dispatcher::singleton().registerFallback(
      c10::DispatchKey::Fake, c10::KernelFunction::makeFallthrough(), "a test");
  Fit plain, fit;
  CapturedStep step(torch::kCPU, fit.function());
  for (int i = 0; i < 6; ++i) {
    CHECK(step(some_batch(i))[0].equal(plain.step(some_batch(i))[0].detach()));
  }
  check_equal(fit, plain);
  CHECK(fit.host_runs == 6);
  CHECK_FALSE(step.is_captured());
}

TEST_CASE("on the CPU, replays use at most 1.1 times as much memory as the eager loop", "[alone]") {
  // The model has 24 blocks, each of which saves 4 MiB for the backward pass.
  const auto peak_of = [](bool captured) {
    std::vector<torch::Tensor> weights;
    for (int i = 0; i < 24; ++i) weights.push_back(torch::ones({1024}, torch::requires_grad()));
    const auto run = [&](const StepTensors& batch) {
      for (auto& weight : weights) weight.mutable_grad().reset();
      auto x = batch[0];
      for (const auto& weight : weights) x = torch::tanh(x * weight);
      x.sum().backward();
      return StepTensors{x.sum().detach()};
    };
    const StepTensors batch = {torch::ones({1024, 1024})};
    const auto live = std::make_shared<sconce::test::LiveMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
    CapturedStep step(torch::kCPU, run);
    for (int i = 0; i < 6; ++i) captured ? step(batch) : run(batch);
    return live->peak;
  };
  const auto plain = peak_of(false), captured = peak_of(true);
  INFO(captured << " of " << plain << " bytes");
  CHECK(static_cast<double>(captured) <= 1.1 * static_cast<double>(plain));
}
