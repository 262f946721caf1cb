#pragma once

#include <cstddef>
#include <vector>

#include "catch.hpp"

namespace sconce::test {

/// torchmetrics' values for the random cases, flattened, from tests/reference/metrics.txt.
std::vector<torch::Tensor> metric_values();

/// Draws a case as tests/reference/metrics.py does and returns this library's value.
torch::Tensor metric_of_case(size_t number);

}  // namespace sconce::test
