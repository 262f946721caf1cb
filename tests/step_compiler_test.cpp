#include "sconce/step_compiler.hpp"

#include <functional>

#include "capture/compiled_step.hpp"
#include "capture_scope.hpp"
#include "catch.hpp"
#include "program/interpreted_steps.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "support/refusals.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

using sconce::CapturedStep;
using sconce::KeptStep;
using sconce::StepMode;
using sconce::detail::StepVote;
using sconce::test::InterpretedSteps;
using Tensors = std::vector<torch::Tensor>;

namespace {

Tensors square(const Tensors& batch) {
  return {(batch[0] * 2 + 1).relu().square().sum()};
}

CapturedStep captured(const std::shared_ptr<InterpretedSteps>& compiler) {
  return CapturedStep(torch::kCPU, square, {.num_warmup_iters = 1, .compiler = compiler});
}

}  // namespace

TEST_CASE(
    "a step alternates between its replayed and compiled variants until the faster variant is "
    "chosen") {
  const auto compiler = std::make_shared<InterpretedSteps>(sconce::StepCompilerOptions{});
  auto step = captured(compiler);
  const auto x = torch::rand({16});
  const auto expected = square({x})[0];
  for (int call = 0; call < 24; ++call) {
    CHECK(step({x})[0].equal(expected));
    if (call == 0) CHECK(step.mode() == StepMode::eager);
    if (call == 2) CHECK(step.mode_reason() == "both variants are being timed");
  }
  CHECK(step.mode_reason().starts_with("a compiled step takes "));
  CHECK(compiler->state_dict().toGenericDict().size() == 1);
}

TEST_CASE(
    "a compiler that loads another compiler's state keeps the loaded step variants without "
    "benchmarking them again") {
  for (const auto* form : {"compiled", "replay"}) {
    const auto compiler = std::make_shared<InterpretedSteps>(sconce::StepCompilerOptions{});
    c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
    state.insert("step", form);
    compiler->load_state_dict(state);
    auto step = captured(compiler);
    for (int call = 0; call < 4; ++call) step({torch::rand({16})});
    CHECK(step.mode() ==
          (form == std::string("compiled") ? StepMode::compiled : StepMode::replayed));
    CHECK(step.mode_reason() == "an earlier run kept this variant");
    CHECK(compiler->state_dict().toGenericDict().at("step").toStringRef() == form);
  }
}

namespace {

struct ModeAndReason {
  bool operator==(const ModeAndReason&) const = default;
  StepMode mode;
  std::string reason;
};

// Runs 40 steps in one process, with `other` casting the votes of a second process. Returns the
// last step's mode and the reason for that mode.
ModeAndReason run_beside(const std::function<StepVote(const StepVote&)>& other) {
  std::shared_ptr<sconce::detail::StepBallot> ballot;
  const auto voting = [&](const Tensors& batch) {
    ballot = sconce::detail::CaptureScope::ballot();
    ballot->is_shared = true;
    return square(batch);
  };
  const auto compiler = std::make_shared<InterpretedSteps>(sconce::StepCompilerOptions{});
  CapturedStep step(torch::kCPU, voting, {.num_warmup_iters = 1, .compiler = compiler});
  for (int call = 0; call < 40; ++call) {
    step({torch::rand({16})});
    ballot->all_votes = {ballot->own, other(ballot->own)};
  }
  return {step.mode(), step.mode_reason()};
}

}  // namespace

TEST_CASE("each process keeps the step variant that is faster across all processes") {
  constexpr int64_t ten_minutes = 600'000'000'000;
  for (const bool is_slow : {false, true}) {
    const auto [mode, reason] = run_beside([&](StepVote vote) {
      if (vote.stage == StepVote::timed) {
        (is_slow ? vote.compiled_ns : vote.replay_ns) = ten_minutes;
      }
      return vote;
    });
    CHECK(mode == (is_slow ? StepMode::replayed : StepMode::compiled));
    CHECK_THAT(reason, Catch::Matchers::StartsWith("a compiled step takes ") &&
                           Catch::Matchers::ContainsSubstring("300"));
  }
}

TEST_CASE("each process replays its step until all processes agree on a step variant") {
  const std::string undecided = "the processes in the group have not agreed on a variant";
  CHECK(run_beside([](const StepVote&) { return StepVote(); }) ==
        ModeAndReason{StepMode::replayed, undecided});
}

TEST_CASE("a process keeps the step variant that another process already uses") {
  const std::string reason = "another process in the group keeps this variant";
  CHECK(run_beside([](const StepVote&) {
          return StepVote{.stage = StepVote::settled, .form = StepVote::compiled};
        }) == ModeAndReason{StepMode::compiled, reason});
}

namespace {

// A compiler that compiles steps incorrectly in one of several ways.
class WrongCompiler final : public sconce::StepCompiler {
 public:
  enum class Fault { compile, take, run, values };

  explicit WrongCompiler(Fault fault) : StepCompiler({.wait = true}), fault_(fault) {}

  std::unique_ptr<sconce::detail::StepCompilation> compile(
      const sconce::detail::RecordedStep& step) override {
    if (fault_ == Fault::compile) TORCH_CHECK(false, "no compiler");
    return std::make_unique<Compilation>(interpreter_.compile(step), fault_);
  }

 private:
  struct Code final : sconce::detail::CompiledCode {
    std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) override {
      TORCH_CHECK(!throws, "it throws");
      auto results = right->run(inputs);
      for (const auto& memory : written) memory.mul_(1.01);
      for (const auto& result : results) result.mul_(1.01);
      return results;
    }

    std::shared_ptr<sconce::detail::CompiledCode> right = {};
    std::vector<at::Tensor> written = {};
    bool throws = false;
  };

  struct Compilation final : sconce::detail::StepCompilation {
    Compilation(std::unique_ptr<sconce::detail::StepCompilation> of, Fault with)
        : right(std::move(of)), fault(with) {}

    bool is_over() override { return right->is_over(); }
    void wait() override { right->wait(); }
    const std::string& key() const override { return right->key(); }
    std::vector<sconce::detail::CompiledCall> take() override {
      TORCH_CHECK(fault != Fault::take, "no package");
      auto calls = right->take();
      for (auto& call : calls) {
        auto code = std::make_shared<Code>();
        code->right = call.code;
        code->written = call.written;
        code->throws = fault == Fault::run;
        call.code = code;
      }
      return calls;
    }

    std::unique_ptr<sconce::detail::StepCompilation> right;
    Fault fault;
  };

  Fault fault_;
  InterpretedSteps interpreter_{sconce::StepCompilerOptions{}};
};

}  // namespace

TEST_CASE("if the compiler fails or miscompiles a step, the step is replayed with a warning") {
  using Fault = WrongCompiler::Fault;
  const std::vector<std::pair<Fault, std::string>> faults = {
      {Fault::compile, "no compiler"},
      {Fault::take, "no package"},
      {Fault::run, "the compiled code throws: it throws"},
      {Fault::values, "expected compiled code to match the replay within 0.001"}};
  for (const auto& [fault, reason] : faults) {
    const sconce::test::Warnings warnings;
    CapturedStep step(torch::kCPU, square,
                      {.num_warmup_iters = 1, .compiler = std::make_shared<WrongCompiler>(fault)});
    for (int call = 0; call < 6; ++call) {
      const auto x = torch::rand({16});
      CHECK(step({x})[0].equal(square({x})[0]));
    }
    CHECK(step.mode() == StepMode::replayed);
    CHECK_THAT(step.mode_reason(), Catch::Matchers::ContainsSubstring(reason));
    REQUIRE(warnings.messages().size() == 1);
    CHECK_THAT(warnings.messages()[0],
               Catch::Matchers::StartsWith(
                   "sconce::CapturedStep: the step is replayed instead of compiled: ") &&
                   Catch::Matchers::ContainsSubstring(reason));
  }
}

TEST_CASE("a compiler rejects a state that does not map step keys to step variants") {
  InterpretedSteps compiler(sconce::StepCompilerOptions{});
  c10::impl::GenericDict wrong(c10::StringType::get(), c10::AnyType::get());
  wrong.insert("step", "fast");
  sconce::test::check_refusals({{[&] { compiler.load_state_dict(1); },
                                 "sconce::StepCompiler::load_state_dict: expected a dict"},
                                {[&] { compiler.load_state_dict(wrong); },
                                 "expected 'step' to be \"compiled\" or \"replay\""}});
}

TEST_CASE("a step on a GPU rejects a compiler", "[gpu]") {
  sconce::test::require_gpu();
  const auto compiler = std::make_shared<InterpretedSteps>(sconce::StepCompilerOptions{});
  CHECK_THROWS_WITH(CapturedStep(sconce::gpu(), square, {.compiler = compiler}),
                    Catch::Matchers::StartsWith("sconce::CapturedStep: expected a CPU device for a "
                                                "compiled step, got cuda:0"));
}
