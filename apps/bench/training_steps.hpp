#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/program/inductor.hpp"
#include "workload.hpp"

namespace bench {

using Tensors = std::vector<at::Tensor>;

/// Runs different variants of a workload's step. A workload's non-eager variants are named
/// NAME_captured and NAME_compiled.
enum class Run { eager, captured, compiled };

/// Throws `NotAvailable` if sconce warns that it replays a step instead of compiling it. Every
/// other warning is an error.
class NoReplay final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const auto& text = warning.msg();
    if (text.find("is replayed instead of compiled") != std::string::npos) throw NotAvailable(text);
    throw std::runtime_error("expected a compiled step without warnings, got " + text);
  }
};

/// Returns the compiler for the steps of this run, or null if there is none. The compiler keeps the
/// compiled variant even if replaying is faster, so that both can be compared. From now on, a
/// warning in this thread goes to `NoReplay`.
template <Run run>
std::shared_ptr<sconce::StepCompiler> compiler() {
  if constexpr (run != Run::compiled) return nullptr;
  static NoReplay no_replay;
  c10::WarningUtils::set_warning_handler(&no_replay);
  return sconce::program::inductor({.keep = sconce::KeptStep::compiled, .wait = true});
}

/// Wraps `step`, which performs a training step on a batch and returns its loss. The check is the
/// loss after 3 steps. By that point, a captured step has been replayed, and a compiled step has
/// been compared.
template <Run run = Run::eager, class Step>
Workload calls_of(const Step& step, const Tensors& batch) {
  const auto workload = [](const auto& call) {
    for (int i = 0; i < 2; ++i) call();
    return Workload{call, {call().template item<double>()}};
  };
  if constexpr (run == Run::eager) {
    return workload([=] { return step(batch); });
  } else {
    const auto captured = std::make_shared<sconce::CapturedStep>(
        batch.front().device(), [step](const Tensors& tensors) { return Tensors{step(tensors)}; },
        sconce::CapturedStepOptions{.num_warmup_iters = 1, .compiler = compiler<run>()});
    return workload([=] { return (*captured)(batch)[0]; });
  }
}

/// Wraps the steps of a training loop that does not record losses.
template <Run run = Run::eager, class Optimizer, class Loss>
Workload training_steps(const std::shared_ptr<Optimizer>& optimizer, const Tensors& batch,
                        const Loss& compute_loss) {
  return calls_of<run>(
      [=](const Tensors& tensors) {
        optimizer->zero_grad();
        at::Tensor loss = compute_loss(tensors);
        loss.backward();
        optimizer->step();
        return loss;
      },
      batch);
}

}  // namespace bench
