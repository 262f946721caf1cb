// Runs fits with `compile` set, using a compiler that runs the same kernels as the replay, so
// Python is not required.

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "program/interpreted_steps.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/epoch_logger.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

namespace compiled_fits {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;
using sconce::KeptStep;
using sconce::Trainer;
using sconce::TrainerOptions;
using sconce::amp::Precision;
using sconce::data::Batches;
using sconce::test::points;
using sconce::test::TempDir;

namespace {

class CountingSteps final : public sconce::StepCompiler {
 public:
  explicit CountingSteps(KeptStep keep = KeptStep::faster)
      : StepCompiler({.keep = keep}), steps_({.keep = keep}) {}

  std::unique_ptr<sconce::detail::StepCompilation> compile(
      const sconce::detail::RecordedStep& step) override {
    ++compiled;
    return steps_.compile(step);
  }

  int compiled = 0;

 private:
  sconce::test::InterpretedSteps steps_;
};

using Compiler = std::shared_ptr<CountingSteps>;

Compiler compiler(KeptStep keep = KeptStep::faster) {
  return std::make_shared<CountingSteps>(keep);
}

// Returns a compiler whose state specifies that steps keep the given variant, "compiled" or
// "replay".
Compiler compiler_that_kept(const std::string& form) {
  auto made = compiler();
  c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
  state.insert("step", form);
  made->load_state_dict(state);
  return made;
}

struct CountingNet : torch::nn::Module {
  CountingNet() { register_module("layers", layers); }
  torch::Tensor forward(const torch::Tensor& x) {
    ++host_runs;
    return layers->forward(x);
  }
  torch::nn::Sequential layers = sconce::test::net();
  int host_runs = 0;
};

// A callback that freezes the first layer after `epochs` epochs.
struct Freezing : sconce::TrainerCallback {
  explicit Freezing(size_t of) : epochs(of) {}
  void on_epoch_end(sconce::Fit& fit) override {
    if (fit.epochs.size() != epochs) return;
    for (auto& parameter : fit.model.parameters()) {
      if (parameter.size(0) == 8) parameter.requires_grad_(false);
    }
  }
  size_t epochs;
};

// A network, the objects that train it, and the log of each fit.
struct Training {
  sconce::FitResult fit(TrainerOptions options, int64_t examples = 96,
                        sconce::Callbacks callbacks = {}) {
    options.num_gpus = 0;
    sconce::EpochLogger lines(log);
    callbacks.push_back(&lines);
    return Trainer(std::move(options)).fit(net, optimizer, {batches(examples), {}, callbacks});
  }

  static Batches batches(int64_t examples = 96) {
    return Batches(points(examples), {.batch_size = 16, .shuffle = true, .seed = 7});
  }

  std::shared_ptr<CountingNet> net = std::make_shared<CountingNet>();
  sconce::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  std::ostringstream log = {};
};

void check_equal(const sconce::FitResult& found, const sconce::FitResult& expected) {
  REQUIRE(found.epochs.size() == expected.epochs.size());
  for (size_t i = 0; i < expected.epochs.size(); ++i) {
    INFO("epoch " << i + 1);
    CHECK(found.epochs[i].loss == Catch::Approx(expected.epochs[i].loss).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE(
    "a fit with a compiler has the same losses as a fit without a compiler, even if the last batch "
    "is smaller") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  const sconce::test::Warnings of_fp16_on_a_cpu;
  const auto counting = compiler(KeptStep::compiled);
  Training plain, compiled;
  const auto fit = [&](Training& training, std::shared_ptr<sconce::StepCompiler> by) {
    sconce::optim::lr_scheduler::StepLR schedule(training.optimizer, 2, 0.5);
    sconce::LRScheduling scheduling(schedule);
    torch::manual_seed(5);  // dropout
    return training.fit({.max_epochs = 5,
                         .gradient_clip_val = 0.5,
                         .precision = precision,
                         .compiler = std::move(by)},
                        /*examples=*/98, {&scheduling});
  };
  check_equal(fit(compiled, counting), fit(plain, nullptr));
  CHECK(counting->compiled == 1);
  const int small_batches = 5, before_capture = 4;
  CHECK(compiled.net->host_runs == small_batches + before_capture);
  CHECK_THAT(compiled.log.str(),
             EndsWith("the step is compiled, because compiled steps are kept\n"));
  const auto expected = plain.net->parameters(), found = compiled.net->parameters();
  for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i].allclose(expected[i], 1e-5, 1e-6));
}

TEST_CASE(
    "with a LossSum, a fit with a compiler produces the same losses as a fit without a compiler") {
  const auto counting = compiler(KeptStep::compiled);
  const auto over_positive = [](const torch::Tensor& output, const torch::Tensor& target) {
    const auto losses = torch::nn::functional::cross_entropy(
        output, target, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    return sconce::LossSum{.sum = (losses * target).sum(), .count = target.sum()};
  };
  Training plain, compiled;
  const auto fit = [&](Training& training, std::shared_ptr<sconce::StepCompiler> by) {
    torch::manual_seed(5);  // dropout
    return training.fit({.max_epochs = 5, .compiler = std::move(by), .loss = over_positive});
  };
  check_equal(fit(compiled, counting), fit(plain, nullptr));
  CHECK(counting->compiled == 1);
  CHECK_THAT(compiled.log.str(), ContainsSubstring("the step is compiled, because"));
}

TEST_CASE(
    "with a compiler, a fit's log ends with the chosen step variant and the reason for the "
    "choice") {
  const auto log_of = [](int epochs, std::shared_ptr<sconce::StepCompiler> by) {
    Training training;
    training.fit({.max_epochs = epochs, .compiler = std::move(by)});
    return training.log.str();
  };
  CHECK_THAT(log_of(6, compiler()),
             Matches("[^]*examples/sec on cpu\nthe step is (not )?compiled, because a compiled "
                     "step takes \\d+ us, a replay \\d+ us\n"));
  CHECK_THAT(log_of(2, compiler()),
             EndsWith("the step is not compiled, because both variants are being timed\n"));
  CHECK_THAT(log_of(1, nullptr), EndsWith("examples/sec on cpu\n"));

  struct Failing : sconce::StepCompiler {
    Failing() : StepCompiler({}) {}
    std::unique_ptr<sconce::detail::StepCompilation> compile(
        const sconce::detail::RecordedStep& /*step*/) override {
      TORCH_CHECK(false, "there is no compiler here");
    }
  };
  const sconce::test::Warnings warnings;
  CHECK_THAT(log_of(2, std::make_shared<Failing>()),
             EndsWith("the step is not compiled, because there is no compiler here\n"));
  CHECK(warnings.messages().size() == 1);
}

TEST_CASE("with graph enabled, a fit's log ends by stating whether the step is replayed") {
  const auto log_of = [](int64_t examples) {
    Training training;
    training.fit({.max_epochs = 1, .graph = true}, examples);
    return training.log.str();
  };
  CHECK_THAT(log_of(96), EndsWith("examples/sec on cpu\nthe step is replayed\n"));
  CHECK_THAT(log_of(16), EndsWith("the step is not replayed until the capture is complete\n"));
}

TEST_CASE("if a fit ends before its step is captured, the fit's log says so") {
  Training training;
  training.fit({.compiler = compiler()}, /*examples=*/16);
  CHECK_THAT(training.log.str(),
             EndsWith("the step is not compiled, because the step is not captured\n"));
}

namespace {

// Runs a three-epoch fit in parts, one part per compiler. If a compiler is null, its part of the
// fit runs without compilation. Each part except the last one stops after eight steps. Returns the
// result and the log of the last part.
std::pair<sconce::FitResult, std::string> fit_in_parts(const std::vector<Compiler>& compilers) {
  const TempDir folder;
  for (size_t part = 0;; ++part) {
    torch::manual_seed(5 + part);  // a resumed part loads the generator's state from the file
    Training training;
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    int steps = 0;
    const bool is_last = part + 1 == compilers.size();
    sconce::test::StopWhen stopping([&] { return !is_last && ++steps == 8; });
    auto result =
        training.fit({.max_epochs = 3, .compiler = compilers[part]}, 96, {&saving, &stopping});
    if (is_last) return {std::move(result), training.log.str()};
  }
}

}  // namespace

TEST_CASE(
    "a resumed fit keeps the earlier fit's step variant without benchmarking the variants again") {
  const auto plain = fit_in_parts({nullptr});
  for (const std::string form : {"compiled", "replay"}) {
    const auto fresh = compiler();
    const auto [result, log] = fit_in_parts({compiler_that_kept(form), fresh});
    check_equal(result, plain.first);
    CHECK_THAT(log, EndsWith(std::string("the step is ") + (form == "replay" ? "not " : "") +
                             "compiled, because an earlier run kept this variant\n"));
    CHECK(fresh->state_dict().toGenericDict().at("step").toStringRef() == form);
  }
}

TEST_CASE("a resumed fit uses the step variant that the earlier fit chose by benchmarking") {
  const TempDir folder;
  const auto fit = [&](const Compiler& by, int epochs) {
    Training training;
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    training.fit({.max_epochs = epochs, .compiler = by}, 96, {&saving});
    return by->state_dict().toGenericDict();
  };
  const auto first = fit(compiler(), 6), resumed = fit(compiler(), 7);
  REQUIRE(first.size() == 1);
  REQUIRE(resumed.size() == 1);
  CHECK(resumed.at("step").toStringRef() == first.at("step").toStringRef());
}

TEST_CASE(
    "a checkpoint can be resumed with or without a compiler, regardless of how it was saved") {
  const auto plain = fit_in_parts({nullptr});
  const auto compiling = [] { return compiler(KeptStep::compiled); };
  check_equal(fit_in_parts({nullptr, compiling()}).first, plain.first);
  check_equal(fit_in_parts({compiling(), nullptr}).first, plain.first);
  const auto last = compiling();
  check_equal(fit_in_parts({compiling(), nullptr, last}).first, plain.first);
}

TEST_CASE("freezing a layer between two epochs causes the step to be recompiled") {
  const auto counting = compiler(KeptStep::compiled);
  const auto fit = [](Training& training, std::shared_ptr<sconce::StepCompiler> by) {
    Freezing freezing(2);
    torch::manual_seed(5);
    return training.fit({.max_epochs = 5, .compiler = std::move(by)}, 96, {&freezing});
  };
  Training plain, compiled;
  check_equal(fit(compiled, counting), fit(plain, nullptr));
  CHECK(counting->compiled == 2);
  CHECK(compiled.net->host_runs < plain.net->host_runs);
  CHECK_THAT(compiled.log.str(), ContainsSubstring("the step is compiled, because "));
}

TEST_CASE("with a compiler, all epochs of a loop share one compiled step") {
  const auto counting = compiler(KeptStep::compiled);
  Training plain, compiled;
  Trainer plain_trainer({.num_gpus = 0}), trainer({.num_gpus = 0, .compiler = counting});
  for (int epoch = 0; epoch < 4; ++epoch) {
    const auto loss_of = [&](Training& training, Trainer& by) {
      torch::manual_seed(epoch);
      return by.fit_epoch(training.net, training.optimizer, Training::batches()).loss;
    };
    CHECK(loss_of(compiled, trainer) == Catch::Approx(loss_of(plain, plain_trainer)).epsilon(1e-5));
  }
  CHECK(counting->compiled == 1);
  CHECK(compiled.net->host_runs == 4);
}

TEST_CASE(
    "the Trainer rejects a compiler together with gradient accumulation or a LibTorch optimizer") {
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0, .accumulate_grad_batches = 2, .compiler = compiler()}),
      StartsWith("sconce::Trainer: expected accumulate_grad_batches to be 1 with compiler, got 2"));
  Training training;
  torch::optim::SGD of_libtorch(training.net->parameters(), 0.1);
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0, .compiler = compiler()})
                        .fit(training.net, of_libtorch, {Training::batches()}),
                    StartsWith("sconce::Trainer: expected a sconce optimizer with compiler"));
}

TEST_CASE("on a GPU, the Trainer rejects a compiler", "[gpu]") {
  sconce::test::require_gpu();
  CHECK_THROWS_WITH(
      Trainer({.device = sconce::gpu(), .compiler = compiler()}),
      StartsWith("sconce::Trainer: expected a CPU device when compiler is set, got cuda:0"));
}

}  // namespace compiled_fits
