#pragma once

#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "catch.hpp"

namespace sconce::test {

/// Draws the same numbers as tests/reference/metrics.py.
class MetricDraw {
 public:
  explicit MetricDraw(uint64_t seed) : state_(seed) {}
  int64_t operator()(int64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state_ >> 33) % n;
  }
  /// Returns the drawn element.
  template <class T>
  T of(const std::vector<T>& all) {
    return all[static_cast<size_t>((*this)(std::ssize(all)))];
  }

 private:
  uint64_t state_;
};

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The number of cases that precede the cases of `further_metric_of_case`.
constexpr size_t first_cases = 1000;

/// The types of the numbers.
inline const std::vector<torch::ScalarType> metric_types = {torch::kFloat, torch::kDouble,
                                                            torch::kHalf, torch::kBFloat16};

std::vector<int64_t> draw_extra(MetricDraw& draw);
std::vector<int64_t> with_first(int64_t first, std::vector<int64_t> extra);
torch::Tensor draw_numbers(MetricDraw& draw, const std::vector<int64_t>& shape);

/// Returns the values that torchmetrics computes for the random cases, flattened. They are read
/// from tests/reference/metrics.txt or from the file in the environment variable
/// SCONCE_METRIC_VALUES.
std::vector<torch::Tensor> metric_values();

/// Draws the same case as tests/reference/metrics.py and returns the value that sconce computes.
torch::Tensor metric_of_case(size_t number);

/// Like `metric_of_case`, but for a case with labels, curves, percentages, R2, or perplexity.
torch::Tensor further_metric_of_case(size_t number);

}  // namespace sconce::test
