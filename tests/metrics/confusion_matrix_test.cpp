#include "sconce/metrics/confusion_matrix.hpp"

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::ConfusionMatrix;

TEST_CASE(
    "a confusion matrix has a row for each target class and a column for each predicted class") {
  ConfusionMatrix matrix({.num_classes = 3, .ignore_index = -1});
  const auto target = torch::tensor({0, 1, 2, 2, -1});
  matrix.update(torch::tensor({0, 2, 2, 1, 0}), target);
  matrix.update(torch::one_hot(torch::tensor({0, 2, 2, 1, 0}), 3).to(torch::kFloat), target);
  CHECK(matrix.compute().equal(torch::tensor({{2, 0, 0}, {0, 0, 2}, {0, 2, 2}})));
}

TEST_CASE("a confusion matrix ignores positions with an out-of-range prediction or target") {
  ConfusionMatrix matrix({.num_classes = 2});
  // Without the check, (0, 2) would be counted in cell (1, 0), and (2, -1) would be counted in cell
  // (1, 1).
  matrix.update(torch::tensor({2, -1, -1, 1, 0}), torch::tensor({0, 1, 2, -1, 2}));
  CHECK(matrix.compute().equal(torch::zeros({2, 2}, torch::kLong)));
}

TEST_CASE("a confusion matrix rejects the same inputs as the other classification metrics") {
  CHECK_THAT(sconce::test::error_of([] { ConfusionMatrix matrix({.num_classes = 1}); }),
             ContainsSubstring(
                 "sconce::metrics::ConfusionMatrix: expected num_classes to be at least 2, got 1"));
  ConfusionMatrix matrix({.num_classes = 3});
  CHECK_THAT(sconce::test::error_of(
                 [&] { matrix.update(torch::zeros({4, 2}), torch::zeros({4}, torch::kLong)); }),
             ContainsSubstring("sconce::metrics::ConfusionMatrix: expected logits of 3 classes"));
}
