#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "program/interpreted_steps.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/gloo_types.hpp"

// Runs captured steps and compiled steps in several processes, along with the eager loops that
// serve as references.
namespace sconce::test {

using Tensors = std::vector<torch::Tensor>;
using Optimizer = std::unique_ptr<torch::optim::Optimizer>;
using MakeOptimizer = std::function<Optimizer(const Tensors& parameters)>;

inline Optimizer sgd(const Tensors& parameters) {
  return std::make_unique<optim::SGD>(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
}

inline Optimizer adam(const Tensors& parameters) {
  return std::make_unique<optim::Adam>(parameters, torch::optim::AdamOptions(0.01));
}

struct NormedImpl : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 30));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(30));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(30, 10));
  int runs = 0;

  torch::Tensor forward(const torch::Tensor& x) {
    ++runs;
    return last(torch::relu(norm(first(x))));
  }
};
TORCH_MODULE(Normed);

// On rank 1, every fifth batch has fewer rows.
inline Tensors rank_batch(int step, int rank) {
  torch::manual_seed(100 * step + rank);
  const int64_t rows = rank == 1 && step % 5 == 4 ? 5 : 8;
  return {torch::randn({rows, 20}), torch::randint(0, 10, {rows})};
}

// A network that several processes train together.
struct RankTraining {
  RankTraining(const distributed::ProcessGroup& group,
               const nn::DistributedDataParallelOptions& options, const MakeOptimizer& make)
      : net(seeded()), model(net, group, options), optimizer(make(net->parameters())) {}

  static Normed seeded() {
    torch::manual_seed(7);
    return Normed();
  }

  Tensors step(const Tensors& batch) {
    optim::zero_grad(*optimizer);
    const auto loss = torch::cross_entropy_loss(model(batch[0]), batch[1]);
    loss.backward();
    optimizer->step();
    return {loss.detach()};
  }

  Tensors add_gradients(const Tensors& batch) {
    const auto loss = torch::cross_entropy_loss(model(batch[0]), batch[1]);
    loss.backward();
    return {loss.detach()};
  }

  Tensors values() const {
    Tensors all = net->parameters();
    for (const auto& buffer : net->buffers()) all.push_back(buffer);
    return all;
  }

  Normed net;
  nn::DistributedDataParallel<NormedImpl> model;
  Optimizer optimizer;
};

inline void print_equal(const std::string& name, const Tensors& found, const Tensors& expected) {
  bool is_equal = found.size() == expected.size();
  for (size_t i = 0; is_equal && i < found.size(); ++i) is_equal = found[i].equal(expected[i]);
  std::cout << name << (is_equal ? ": equal\n" : ": different\n");
}

/// Trains with eager steps and with captured steps, and prints whether the resulting losses,
/// parameters, and buffers are bitwise identical.
inline void compare_captured_steps(const distributed::ProcessGroup& group) {
  constexpr int steps = 12;
  const auto train = [&](bool captured, const nn::DistributedDataParallelOptions& options,
                         const MakeOptimizer& make, int warmup) {
    RankTraining training(group, options, make);
    const auto plain = [&](const Tensors& batch) { return training.step(batch); };
    CapturedStep step(torch::kCPU, plain,
                      {.num_warmup_iters = warmup, .modules = {training.net.ptr()}});
    Tensors losses;
    for (int i = 0; i < steps; ++i) {
      const auto batch = rank_batch(i, group.rank());
      losses.push_back((captured ? step(batch) : plain(batch))[0].clone());
      if (i != 6) continue;  // after an evaluation, the next forward may skip the buffers
      const torch::NoGradGuard no_grad;
      training.model(batch[0]);
    }
    TORCH_CHECK(step.is_captured() == captured);
    TORCH_CHECK((training.net->runs < steps) == captured, "no step was replayed");
    for (const auto& value : training.values()) losses.push_back(value.detach());
    return losses;
  };
  const auto compare = [&](const std::string& name,
                           const nn::DistributedDataParallelOptions& options,
                           const MakeOptimizer& make, int warmup = 3) {
    print_equal(name, train(true, options, make, warmup), train(false, options, make, warmup));
  };
  compare("SGD", {}, sgd);
  compare("Adam", {}, adam);
  compare("several buckets", {.bucket_cap_mb = 0.002}, sgd, /*warmup=*/1);
  if (gloo_reduces_16_bits())
    compare("bf16", {.bucket_cap_mb = 0.002, .comm_hook = nn::CommHook::bf16_compress}, sgd);
  compare("own buffers", {.broadcast_buffers = false}, sgd, /*warmup=*/2);
}

/// Accumulates gradients with eager and with captured steps, and averages some of them. The guards
/// are either inside each step or around six steps.
inline Tensors accumulate(const distributed::ProcessGroup& group, bool captured, bool inside) {
  RankTraining training(group, {}, sgd);
  const auto plain = [&](const Tensors& batch) {
    if (!inside) return training.add_gradients(batch);
    {
      const auto guard = training.model.no_sync();
      training.add_gradients(batch);
    }
    return training.add_gradients(batch);
  };
  CapturedStep step(torch::kCPU, plain, {});
  Tensors results;
  for (int i = 0; i < 30; ++i) {
    std::optional<nn::NoSyncGuard> guard;
    if (!inside && i / 6 % 2 == 0) guard.emplace(training.model);
    const auto batch = rank_batch(i, group.rank());
    results.push_back((captured ? step(batch) : plain(batch))[0].clone());
    if (i % 12 != 11) continue;
    training.optimizer->step();
    training.optimizer->zero_grad(/*set_to_none=*/false);
  }
  TORCH_CHECK(step.is_captured() == captured);
  const int runs = inside ? 60 : 30;
  TORCH_CHECK((training.net->runs < runs) == captured, "no step was replayed");
  for (const auto& value : training.values()) results.push_back(value.detach());
  return results;
}

/// Computes sums across the ranks within captured steps, and prints whether all of them equal the
/// sums from eager steps.
inline void compare_collectives(const distributed::ProcessGroup& group) {
  const auto plain = [&](const Tensors& batch) {
    const auto sum = batch[0] * 2;
    group.all_reduce(sum);
    const auto first = sum + torch::ones({20});
    group.broadcast(first, 1);
    return Tensors{first.tanh()};
  };
  CapturedStep step(torch::kCPU, plain);
  Tensors found, expected;
  for (int i = 0; i < 8; ++i) {
    const Tensors batch = {rank_batch(0, group.rank())[0] + i};
    found.push_back(step(batch)[0].clone());
    expected.push_back(plain(batch)[0]);
  }
  TORCH_CHECK(step.is_captured());
  print_equal("collectives", found, expected);
}

/// Returns the rows for a rank. On rank 1, the last of the five batches has fewer rows.
inline data::Batches rank_batches(int rank) {
  const int64_t rows = rank == 1 ? 37 : 40;
  torch::manual_seed(rank);
  return data::Batches({torch::randn({rows, 20}), torch::randint(0, 10, {rows})},
                       {.batch_size = 8});
}

/// Runs fits with and without `graph`, and prints whether their results are equal.
inline void compare_captured_fits(const distributed::ProcessGroup& group) {
  for (const bool inside : {false, true}) {
    print_equal(inside ? "no_sync within a step" : "no_sync around steps",
                accumulate(group, true, inside), accumulate(group, false, inside));
  }
  const auto fit = [&](bool graph, const MakeOptimizer& make) {
    RankTraining training(group, {}, make);
    Trainer trainer({.max_epochs = 3,
                     .num_gpus = 0,
                     .gradient_clip_val = 0.5,
                     .graph = graph,
                     .process_group = group});
    const auto result =
        trainer.fit(training.model, *training.optimizer, {rank_batches(group.rank())});
    TORCH_CHECK((training.net->runs < 15) == graph, "no step was replayed");
    Tensors values = training.values();
    for (const auto& epoch : result.epochs) values.push_back(torch::tensor(epoch.loss));
    return values;
  };
  print_equal("a fit by SGD", fit(true, sgd), fit(false, sgd));
  print_equal("a fit by Adam", fit(true, adam), fit(false, adam));
}

/// Checks that the first call of a captured step rejects options that the step cannot replay.
/// Otherwise, writes to stderr.
inline void refuse_captured_steps(const distributed::ProcessGroup& group) {
  const std::pair<std::string, nn::DistributedDataParallelOptions> refused[] = {
      {"find_unused_parameters", {.find_unused_parameters = true}},
      {"static_graph", {.static_graph = true}}};
  for (const auto& [name, options] : refused) {
    RankTraining training(group, options, sgd);
    CapturedStep step(torch::kCPU, [&](const Tensors& batch) { return training.step(batch); });
    const auto error = error_of([&] { step(rank_batch(0, group.rank())); });
    if (error.find("in a captured step on the CPU, got " + name) == std::string::npos) {
      std::cerr << name << " is not refused: " << error << '\n';
    }
  }
}

/// A compiler that finishes after being polled `polls` times. The compiled code sleeps, and the
/// compilation may fail.
class RankCompiler final : public StepCompiler {
 public:
  struct Options {
    KeptStep keep = KeptStep::faster;
    int polls = 0;
    std::chrono::milliseconds sleep = {};
    bool fails = false;
    std::string kept = {};  // the form kept by an earlier run
  };

  explicit RankCompiler(Options options)
      : StepCompiler({.keep = options.keep}), options_(std::move(options)) {
    if (options_.kept.empty()) return;
    c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
    state.insert("step", options_.kept);
    load_state_dict(state);
  }

  std::unique_ptr<sconce::detail::StepCompilation> compile(
      const sconce::detail::RecordedStep& step) override {
    TORCH_CHECK(!options_.fails, "there is no compiler on this rank");
    auto made = std::make_unique<Late>();
    made->polls = options_.polls;
    made->sleep = options_.sleep;
    made->done = steps_.compile(step);
    return made;
  }

 private:
  struct Sleeping final : sconce::detail::CompiledCode {
    Tensors run(const Tensors& inputs) override {
      std::this_thread::sleep_for(sleep);
      return code->run(inputs);
    }
    std::chrono::milliseconds sleep = {};
    std::shared_ptr<sconce::detail::CompiledCode> code = {};
  };

  struct Late final : sconce::detail::StepCompilation {
    bool is_over() override { return polls-- <= 0; }
    void wait() override {}
    std::vector<sconce::detail::CompiledCall> take() override {
      auto calls = done->take();
      for (auto& call : calls) {
        auto code = std::make_shared<Sleeping>();
        code->sleep = sleep;
        code->code = std::exchange(call.code, nullptr);
        call.code = std::move(code);
      }
      return calls;
    }
    const std::string& key() const override { return done->key(); }

    int polls = 0;
    std::chrono::milliseconds sleep = {};
    std::unique_ptr<sconce::detail::StepCompilation> done = {};
  };

  Options options_;
  InterpretedSteps steps_ = InterpretedSteps(StepCompilerOptions());
};

/// Trains with compiled steps and prints how each step ran (eager, replayed, or compiled), the
/// reason for the last one, and whether the losses equal the losses of eager steps. A layer changes
/// its mode before step `change_at`.
inline void run_compiled(const distributed::ProcessGroup& group, const std::string& name,
                         const RankCompiler::Options& options, int change_at = -1) {
  constexpr int steps = 70;
  RankTraining plain(group, {}, sgd), training(group, {}, sgd);
  CapturedStep step(
      torch::kCPU, [&](const Tensors& batch) { return training.step(batch); },
      {.modules = {training.net.ptr()}, .compiler = std::make_shared<RankCompiler>(options)});
  std::string modes;
  bool are_alike = true;
  for (int i = 0; i < steps; ++i) {
    if (i == change_at) {
      for (auto* each : {&plain, &training}) each->net->norm->eval();
    }
    const auto batch = rank_batch(0, group.rank());
    are_alike &= step(batch)[0].allclose(plain.step(batch)[0], 1e-5, 1e-6);
    modes += step.mode() == StepMode::eager ? 'e' : step.mode() == StepMode::replayed ? 'r' : 'c';
  }
  std::cout << name << ": " << modes << ' ';
  if (name != "fails on one rank") std::cout << step.mode_reason() << ", ";
  std::cout << "losses " << (are_alike ? "alike" : "different") << '\n';
}

/// Runs fits with `compile`, and prints the same information.
inline void run_compiled_fit(const distributed::ProcessGroup& group) {
  struct Modes : TrainerCallback {
    void on_epoch_end(Fit& fit) override { last = fit.step_mode; }
    std::string last = {};
  };
  const auto fit = [&](const std::shared_ptr<StepCompiler>& compiler, Modes& modes) {
    RankTraining training(group, {}, sgd);
    Trainer trainer({.max_epochs = 3, .num_gpus = 0, .compiler = compiler, .process_group = group});
    return trainer.fit(training.model, *training.optimizer,
                       {.train = rank_batches(group.rank()), .callbacks = {&modes}});
  };
  Modes plain, compiled;
  const auto expected = fit(nullptr, plain);
  const auto found = fit(std::make_shared<RankCompiler>(RankCompiler::Options{
                             .keep = KeptStep::compiled, .polls = group.rank()}),
                         compiled);
  bool are_alike = true;
  for (size_t i = 0; i < expected.epochs.size(); ++i) {
    const double loss = expected.epochs[i].loss;
    are_alike &= std::abs(found.epochs[i].loss - loss) <= 1e-5 * loss;
  }
  std::cout << "fit: " << compiled.last << ", losses " << (are_alike ? "alike" : "different")
            << '\n';
}

inline void run_compiled_steps(const distributed::ProcessGroup& group) {
  using namespace std::chrono_literals;
  const bool is_last = group.rank() == 1;
  const auto compiled = KeptStep::compiled;
  run_compiled(group, "slow to compile", {.keep = compiled, .polls = is_last ? 9 : 0});
  run_compiled(group, "slow on one rank", {.sleep = is_last ? 1ms : 0ms});
  run_compiled(group, "kept by both", {.kept = "compiled"});
  run_compiled(group, "kept by one", {.kept = is_last ? "replay" : "compiled"});
  run_compiled(group, "fails on one rank", {.keep = compiled, .fails = is_last});
  run_compiled(group, "another mode later", {.keep = compiled}, /*change_at=*/30);
  run_compiled_fit(group);
}

}  // namespace sconce::test
