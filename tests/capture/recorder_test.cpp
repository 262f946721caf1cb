#include "capture/recorder.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <variant>

#include "capture/step_recorder.hpp"
#include "catch.hpp"
#include "host_call.hpp"
#include "sconce/amp/autocast.hpp"

namespace {

// Returns how many casts a replay of the step computes.
int64_t number_of_casts(const std::function<void()>& step) {
  REQUIRE(sconce::detail::can_record());
  const auto recording = sconce::detail::record(step, nullptr);
  REQUIRE(recording.reject_reason == "");
  return std::count_if(recording.step->calls.begin(), recording.step->calls.end(),
                       [](const auto& call) {
                         const auto* op = std::get_if<sconce::detail::OperatorCall>(&call);
                         return op != nullptr && op->op.schema().name() == "aten::_to_copy";
                       });
}

}  // namespace

TEST_CASE("a replay casts a tensor once and reuses the cast until the tensor changes") {
  const auto x = torch::randn({4, 3});
  torch::nn::Linear layer(3, 3);
  const auto twice = [&](const std::function<void()>& between) {
    return number_of_casts([&] {
      const sconce::amp::AutocastGuard autocast(
          torch::kCPU, {.dtype = torch::kBFloat16, .cache_enabled = false});
      const torch::NoGradGuard no_grad;
      auto y = layer->forward(x);
      between();
      y = y + layer->forward(x);
    });
  };
  CHECK(twice([] {}) == 3);  // the input, the weight and the bias
  CHECK(twice([&] { layer->weight.add_(1); }) == 4);
  CHECK(twice([&] { layer->weight[0].add_(1); }) == 4);
  CHECK(twice([&] { sconce::detail::run_and_record([] {}); }) == 6);
  CHECK(number_of_casts([&] { x.to(torch::kHalf) + x.to(torch::kDouble); }) == 2);
  CHECK(number_of_casts(
            [&] { x.slice(1, 0, 2).to(torch::kHalf) + x.slice(1, 1).to(torch::kHalf); }) == 2);
  CHECK(number_of_casts([&] { x.to(torch::kHalf).add_(1) + x.to(torch::kHalf); }) == 2);
  CHECK(number_of_casts([&] { x.to(torch::kHalf) + x.to(torch::kHalf).add_(1); }) == 2);
}
