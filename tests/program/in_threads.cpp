// Tests captured steps and recorded programs in several threads at the same time.

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/program/inductor.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "support/at_once.hpp"
#include "support/error_of.hpp"
#include "support/same_bytes.hpp"
#include "support/temp_dir.hpp"

using sconce::test::check_at_once;
using sconce::test::same_bytes;

namespace {

using StepTensors = sconce::CapturedStep::Tensors;

torch::nn::Sequential network() {
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  net->eval();
  return net;
}

}  // namespace

TEST_CASE(
    "four threads predict concurrently with the same model, each with a separate CapturedStep") {
  const auto net = network().ptr();
  const auto x = torch::ones({2, 3});
  const auto expected = net->forward(x);
  check_at_once({{"CapturedStep", [&] {
                    const torch::NoGradGuard no_grad;
                    sconce::CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
                      return StepTensors{net->forward(batch[0])};
                    });
                    for (int i = 0; i < 8; ++i) step({x});
                    return step.is_captured() && same_bytes(step({x})[0], expected);
                  }}});
}

TEST_CASE("between calls, four threads read the same CapturedStep and compiler concurrently") {
  const sconce::test::TempDir cache;
  const auto compiler = sconce::program::inductor({.cache_dir = cache.path()});
  const sconce::StepCompiler& read = *compiler;
  const sconce::CapturedStep step(torch::kCPU, [](const StepTensors& batch) { return batch; },
                                  {.compiler = compiler});
  check_at_once({{"StepCompiler", [&] {
                    return !read.kept("step") && !read.options().wait &&
                           read.state_dict().toGenericDict().empty() && !step.is_captured() &&
                           step.mode() == sconce::StepMode::eager &&
                           step.mode_reason() == step.mode_reason();
                  }}});
}

TEST_CASE("a CapturedStep rejects a call from a second thread while another call is running") {
  std::latch inside(1), refused(1);
  sconce::CapturedStep step(torch::kCPU, [&](const StepTensors& batch) {
    inside.count_down();
    refused.wait();
    return batch;
  });
  std::thread first([&] { step({torch::ones({2})}); });
  inside.wait();
  const auto text = sconce::test::error_of([&] { step({torch::ones({2})}); });
  refused.count_down();
  first.join();
  CHECK_THAT(text,
             Catch::Matchers::StartsWith("sconce::CapturedStep: expected one call at a time"));
}

TEST_CASE("four threads record, load, and read programs concurrently") {
  const sconce::test::TempDir folder;
  const auto file = folder.path() / "shared.safetensors";
  const auto x = torch::ones({2, 3});
  auto net = network();
  const auto expected = net->forward(x);
  sconce::program::record(file, net, {{"x", x}});
  const auto program = sconce::program::Program::load(file);
  check_at_once({
      {"Program",
       [&] {
         const auto copy = program;
         return same_bytes(copy.run({x})[0], expected) && program.inputs().front().name == "x" &&
                program.outputs().size() == 1 && program.metadata().empty() &&
                program.device().is_cpu();
       }},
      {"record",
       [&] {
         const sconce::test::TempDir of_thread;
         const auto path = of_thread.path() / "net.safetensors";
         sconce::program::record(path, *net, {{"x", x}});
         return same_bytes(sconce::program::Program::load(path).run({x})[0], expected);
       }},
  });
}
