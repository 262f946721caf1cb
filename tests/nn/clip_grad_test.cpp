#include "sconce/nn/clip_grad.hpp"

#include <limits>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::nn::clip_grad_norm_;
using sconce::nn::clip_grad_value_;

namespace {

torch::Tensor parameter(const torch::Tensor& grad) {
  auto p = torch::zeros_like(grad).requires_grad_();
  p.mutable_grad() = grad.clone();
  return p;
}

}  // namespace

TEST_CASE(
    "clip_grad_norm_ scales gradients above max_norm and returns their norm before clipping") {
  const std::vector<torch::Tensor> parameters = {parameter(torch::tensor({3.0f, 0.0f})),
                                                 parameter(torch::tensor({4.0f}))};
  const auto norm = clip_grad_norm_(parameters, 1.0);
  CHECK(norm.dim() == 0);
  CHECK(norm.item<float>() == 5.0f);
  CHECK(torch::allclose(parameters[0].grad(), torch::tensor({0.6f, 0.0f})));
  CHECK(torch::allclose(parameters[1].grad(), torch::tensor({0.8f})));
}

TEST_CASE("clip_grad_norm_ leaves gradients below max_norm unchanged") {
  const auto grad = torch::tensor({0.3f, 0.4f});
  const std::vector<torch::Tensor> parameters = {parameter(grad)};
  clip_grad_norm_(parameters, 1.0);
  CHECK(parameters[0].grad().equal(grad));
}

TEST_CASE("clip_grad_norm_ matches LibTorch for every norm_type") {
  const double norm_type = GENERATE(1.0, 2.0, 3.0, std::numeric_limits<double>::infinity());
  torch::manual_seed(0);
  std::vector<torch::Tensor> ours;
  std::vector<torch::Tensor> theirs;
  for (int i = 0; i < 5; ++i) {
    ours.push_back(parameter(torch::randn({7, 3})));
    theirs.push_back(parameter(ours.back().grad()));
  }
  const double expected = torch::nn::utils::clip_grad_norm_(theirs, 0.5, norm_type);
  const auto norm = clip_grad_norm_(ours, 0.5, {.norm_type = norm_type});
  CHECK(norm.item<double>() == Catch::Approx(expected).epsilon(1.3e-6));
  for (size_t i = 0; i < ours.size(); ++i) {
    CHECK(torch::allclose(ours[i].grad(), theirs[i].grad(), 1.3e-6, 1e-5));
  }
}

TEST_CASE("clip_grad_norm_ and clip_grad_value_ perform no host reads") {
  const std::vector<torch::Tensor> parameters = {parameter(torch::ones({10}))};
  const sconce::test::HostReads reads;
  clip_grad_norm_(parameters, 1.0);
  clip_grad_value_(parameters, 0.1);
  CHECK(reads.count() == 0);
  torch::nn::utils::clip_grad_norm_(parameters, 1.0);
  CHECK(reads.count() == 1);  // LibTorch's version reads it, so the counter works
}

TEST_CASE("clip_grad_norm_ accepts gradients of different dtypes") {
  const std::vector<torch::Tensor> parameters = {
      parameter(torch::full({1}, 3.0, torch::kDouble)),
      parameter(torch::full({1}, 4.0, torch::kBFloat16))};
  CHECK(clip_grad_norm_(parameters, 1.0).item<double>() == Catch::Approx(5));
  CHECK(parameters[0].grad().item<double>() == Catch::Approx(0.6));
  CHECK(parameters[1].grad().scalar_type() == torch::kBFloat16);
}

TEST_CASE("clip_grad_norm_ and clip_grad_value_ skip parameters without a gradient") {
  const auto bare = torch::ones({2}).requires_grad_();
  CHECK(clip_grad_norm_({bare}, 1.0).item<double>() == 0);
  CHECK(clip_grad_norm_({}, 1.0).item<double>() == 0);
  clip_grad_value_({bare}, 1.0);
  CHECK_FALSE(bare.grad().defined());
}

TEST_CASE("clip_grad_norm_ counts a parameter only once, even if it is passed twice") {
  const auto p = parameter(torch::tensor({3.0f, 4.0f}));
  CHECK(clip_grad_norm_({p, p}, 1.0).item<float>() == 5.0f);
  CHECK(torch::allclose(p.grad(), torch::tensor({0.6f, 0.8f})));
}

TEST_CASE("clip_grad_norm_ rejects a non-finite norm only if error_if_nonfinite is set") {
  const auto grad = torch::tensor({1.0f, std::numeric_limits<float>::infinity()});
  const std::vector<torch::Tensor> parameters = {parameter(grad)};
  CHECK_THROWS_WITH(clip_grad_norm_(parameters, 1.0, {.error_if_nonfinite = true}),
                    ContainsSubstring("sconce::nn::clip_grad_norm_: expected a finite norm"));
  CHECK(parameters[0].grad().equal(grad));
  CHECK(clip_grad_norm_(parameters, 1.0).isinf().item<bool>());
}

TEST_CASE("clip_grad_value_ clamps every element") {
  const std::vector<torch::Tensor> parameters = {parameter(torch::tensor({-3.0f, 0.5f, 3.0f}))};
  clip_grad_value_(parameters, 1.0);
  CHECK(parameters[0].grad().equal(torch::tensor({-1.0f, 0.5f, 1.0f})));
}

TEST_CASE("on a GPU, clip_grad_norm_ accepts a mix of CPU and GPU gradients", "[gpu]") {
  sconce::test::require_gpu();
  const std::vector<torch::Tensor> parameters = {parameter(torch::tensor({3.0f}).to(sconce::gpu())),
                                                 parameter(torch::tensor({4.0f}))};
  const auto norm = clip_grad_norm_(parameters, 1.0);
  CHECK(norm.device() == sconce::gpu());
  CHECK(norm.item<float>() == Catch::Approx(5));
  CHECK(parameters[1].grad().item<float>() == Catch::Approx(0.8));
}
