#include "sconce/metrics/perplexity.hpp"

#include <cmath>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::Perplexity;
using sconce::test::error_of;

TEST_CASE("the perplexity of equal logits equals the vocabulary size") {
  Perplexity perplexity;
  CHECK(std::isnan(perplexity.compute().item<double>()));
  perplexity.update(torch::ones({2, 3, 7}), torch::randint(7, {2, 3}, torch::kLong));
  perplexity.update(torch::zeros({0, 3, 7}), torch::zeros({0, 3}, torch::kLong));
  CHECK(perplexity.compute().item<double>() == Catch::Approx(7));
  CHECK(perplexity.compute().dim() == 0);
}

TEST_CASE("perplexity is the exponential of the cross entropy over non-ignored tokens") {
  const auto logits = torch::randn({4, 6, 9});
  const auto target = torch::randint(9, {4, 6}, torch::kInt);
  target.select(1, 5).fill_(-100);
  Perplexity perplexity({.ignore_index = -100});
  for (const auto& rows : {torch::tensor({0}), torch::tensor({1, 2, 3})}) {
    perplexity.update(logits.index_select(0, rows), target.index_select(0, rows));
  }
  const auto loss =
      torch::nn::functional::cross_entropy(logits.flatten(0, 1), target.flatten().to(torch::kLong));
  CHECK(perplexity.compute().item<double>() == Catch::Approx(std::exp(loss.item<double>())));
}

TEST_CASE("perplexity stays finite when a probability underflows or float16 would overflow") {
  Perplexity perplexity;
  // The target's probability underflows to 0, so torchmetrics, which computes the logarithm of the
  // probability, returns inf.
  perplexity.update(torch::tensor({0.0f, 200.0f}).view({1, 1, 2}).to(torch::kHalf),
                    torch::zeros({1, 1}, torch::kLong));
  CHECK(perplexity.compute().item<double>() == Catch::Approx(std::exp(200.0)));
}

TEST_CASE("a target outside the vocabulary makes the perplexity NaN until the metric is reset") {
  for (const int64_t wrong : {-100, 5}) {
    Perplexity perplexity;
    const auto target = torch::full({1, 2}, wrong, torch::kLong);
    perplexity.update(torch::zeros({1, 2, 5}), target);
    CHECK(std::isnan(perplexity.compute().item<double>()));
    perplexity.reset();
    perplexity.update(torch::zeros({1, 2, 5}), torch::zeros_like(target));
    CHECK(perplexity.compute().item<double>() == Catch::Approx(5));
  }
}

TEST_CASE("Perplexity rejects invalid sizes, types, and devices") {
  const auto message = [](const torch::Tensor& preds, const torch::Tensor& target) {
    Perplexity perplexity;
    const auto error = error_of([&] { perplexity.update(preds, target); });
    CHECK_THAT(error, ContainsSubstring("sconce::metrics::Perplexity: expected "));
    CHECK(perplexity.sums().equal(torch::zeros({2}, torch::kDouble)));
    return error;
  };
  const auto target = torch::zeros({2, 3}, torch::kLong);
  CHECK_THAT(message(torch::zeros({2, 5, 3}), target),
             ContainsSubstring("logits (N, L, vocabulary) for a target (N, L), got [2, 5, 3] for "
                               "[2, 3]"));
  CHECK_THAT(message(torch::zeros({2, 3, 0}), target),
             ContainsSubstring("got [2, 3, 0] for [2, 3]"));
  CHECK_THAT(message(torch::zeros({6, 5}), torch::zeros({6}, torch::kLong)),
             ContainsSubstring("got [6, 5] for [6]"));
  CHECK_THAT(message(torch::zeros({2, 3, 5}), torch::zeros({2, 3})),
             ContainsSubstring("an integer target, got Float and Float"));
  CHECK_THAT(message(torch::zeros({2, 3, 5}, torch::kLong), target),
             ContainsSubstring("got Long and Long"));
  CHECK_THAT(message(torch::zeros({2, 3, 5}), {}), ContainsSubstring("an undefined tensor"));
  CHECK_THAT(message(torch::zeros({2, 3, 5}, torch::kMeta), target),
             ContainsSubstring("on the same device, got meta and cpu"));
}
