#include "sconce/metrics/perplexity.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include "metrics/check_pair.hpp"
#include "metrics/labels.hpp"

namespace sconce::metrics {

namespace {

void check_tokens(const torch::Tensor& preds, const torch::Tensor& target) {
  constexpr auto caller = "sconce::metrics::Perplexity";
  check_tensors(preds, target, caller);
  TORCH_CHECK(preds.dim() == 3 && preds.sizes().slice(0, 2) == target.sizes() && preds.size(2) > 0,
              caller, ": expected logits (N, L, vocabulary) for a target (N, L), got ",
              preds.sizes(), " for ", target.sizes());
  TORCH_CHECK(
      preds.is_floating_point() && at::isIntegralType(target.scalar_type(), /*includeBool=*/false),
      caller, ": expected floating-point logits and an integer target, got ", preds.scalar_type(),
      " and ", target.scalar_type());
}

}  // namespace

void Perplexity::update(const torch::Tensor& preds, const torch::Tensor& target) {
  check_tokens(preds, target);
  const at::NoGradGuard no_grad;
  const auto right = target.to(at::kLong);
  const auto no_token = right.lt(0).logical_or_(right.ge(preds.size(2)));
  const auto counted =
      options_.ignore_index ? right.ne(*options_.ignore_index) : at::ones_like(right, at::kBool);
  const auto log_probabilities =
      preds.log_softmax(2, c10::promoteTypes(preds.scalar_type(), at::kFloat));
  // Positions without a valid token use token 0. If one of these positions is not ignored, `nan_if`
  // below makes the result nan.
  const auto target_log_probs =
      log_probabilities.gather(2, right.masked_fill(no_token, 0).unsqueeze(2)).squeeze(2);
  const auto sum = target_log_probs.masked_fill(counted.logical_not(), 0).sum(at::kDouble);
  add(nan_if(no_token.logical_and(counted).any(), at::stack({-sum, counted.sum(at::kDouble)})));
}

torch::Tensor Perplexity::compute(const torch::Tensor& sums) const {
  return (sums.select(0, 0) / sums.select(0, 1)).exp();
}

}  // namespace sconce::metrics
