// Benchmarks small operators, which spend most of their time on call overhead, and matrix products,
// which spend most of their time in the kernel.

#include <torch/torch.h>

#include "workload.hpp"

namespace bench {

namespace {

double value(const torch::Tensor& tensor) {
  return tensor.sum().item<double>();
}

Workload add(int64_t) {
  const auto a = torch::ones({4, 4});
  return {[a] { a + a; }, {value(a + a)}};
}

Workload mul(int64_t) {
  const auto a = torch::ones({4, 4});
  return {[a] { a* a; }, {value(a * a)}};
}

Workload relu(int64_t) {
  const auto a = torch::ones({4, 4});
  return {[a] { torch::relu(a); }, {value(torch::relu(a))}};
}

// Copies `size` values.
Workload copy(int64_t size) {
  const auto from = torch::ones(size), to = torch::zeros(size);
  return {[from, to] { to.copy_(from); }, {value(from)}};
}

// Multiplies two square matrices with `size` rows.
Workload product(int64_t size) {
  torch::manual_seed(0);
  const auto a = torch::randn({size, size}), b = torch::randn({size, size});
  return {[a, b] { torch::mm(a, b); }, {value(torch::mm(a, b))}};
}

// Multiplies two square matrices and writes the product to an existing tensor, so that no memory is
// allocated and no new page is touched.
Workload product_into(int64_t size) {
  torch::manual_seed(0);
  const auto a = torch::randn({size, size}), b = torch::randn({size, size});
  auto c = torch::empty({size, size});
  torch::mm_out(c, a, b);
  return {[a, b, c]() mutable { torch::mm_out(c, a, b); }, {value(c)}};
}

// Computes 1,000 products of 100x100 matrices and logs their norms. The variants read each norm
// immediately, collect the norms in a list or a tensor and read them together, or compute all
// products and norms in a single call.
Workload norms_read(int64_t) {
  torch::manual_seed(0);
  const auto a = torch::randn({100, 100});
  const auto log = [a] {
    double last = 0;
    for (int i = 0; i < 1000; ++i) last = torch::mm(a, a).norm().item<double>();
    return last;
  };
  return {[log] { log(); }, {log()}};
}

Workload norms_kept(int64_t) {
  torch::manual_seed(0);
  const auto a = torch::randn({100, 100});
  const auto log = [a] {
    std::vector<torch::Tensor> norms;
    for (int i = 0; i < 1000; ++i) norms.push_back(torch::mm(a, a).norm());
    return torch::stack(norms)[999].item<double>();
  };
  return {[log] { log(); }, {log()}};
}

Workload norms_written(int64_t) {
  torch::manual_seed(0);
  const auto a = torch::randn({100, 100});
  const auto log = [a] {
    auto norms = torch::zeros(1000);
    for (int i = 0; i < 1000; ++i) norms[i] = torch::mm(a, a).norm();
    return norms[999].item<double>();
  };
  return {[log] { log(); }, {log()}};
}

Workload norms_batched(int64_t) {
  torch::manual_seed(0);
  const auto a = torch::randn({100, 100}).expand({1000, 100, 100});
  const auto log = [a] { return torch::bmm(a, a).flatten(1).norm(2, 1)[999].item<double>(); };
  return {[log] { log(); }, {log()}};
}

}  // namespace

Workloads ops() {
  return {{"add", add},
          {"mul", mul},
          {"relu", relu},
          {"copy", copy},
          {"product", product},
          {"product_into", product_into},
          {"norms_read", norms_read},
          {"norms_kept", norms_kept},
          {"norms_written", norms_written},
          {"norms_batched", norms_batched}};
}

}  // namespace bench
