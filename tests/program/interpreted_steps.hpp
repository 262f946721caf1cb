#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/compiled_step.hpp"
#include "program/prepared_program.hpp"
#include "program/step_parts.hpp"
#include "sconce/step_compiler.hpp"

// A stand-in for a compiler. Instead of compiling the parts of a step, the stand-in runs each
// part's recorded program operator by operator, with the same kernels as a replay. The results are
// therefore bitwise identical to the replay, and Python is not required.
namespace sconce::test {

class InterpretedCode final : public detail::CompiledCode {
 public:
  explicit InterpretedCode(program::detail::Graph program)
      : program_(std::move(program), at::kCPU, "interpreted step: ") {}

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) override {
    return program_.run(inputs);
  }

 private:
  program::detail::PreparedProgram program_;
};

class InterpretedSteps final : public StepCompiler {
 public:
  using StepCompiler::StepCompiler;

  std::unique_ptr<detail::StepCompilation> compile(const detail::RecordedStep& step) override {
    auto made = std::make_unique<Compilation>();
    for (auto& part : program::detail::parts_of(step)) {
      part.call.code = std::make_unique<InterpretedCode>(std::move(part.program));
      made->calls.push_back(std::move(part.call));
    }
    return made;
  }

 private:
  struct Compilation final : detail::StepCompilation {
    bool is_over() override { return true; }
    void wait() override {}
    std::vector<detail::CompiledCall> take() override { return std::move(calls); }
    const std::string& key() const override { return of_step; }

    std::string of_step = "step";
    std::vector<detail::CompiledCall> calls = {};
  };
};

}  // namespace sconce::test
