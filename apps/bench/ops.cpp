// Operators on small tensors: what calling them costs.

#include <torch/torch.h>

#include "workload.hpp"

namespace bench {

namespace {

Workload add(int64_t) {
  const auto a = torch::ones({4, 4});
  return {.call = [a] { a + a; }, .check = {(a + a).sum().item<double>()}};
}

}  // namespace

Workloads ops() {
  return {{"add", add}};
}

}  // namespace bench
