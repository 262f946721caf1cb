// Each workload here measures a lower bound: the shortest time in which this machine could do the
// work of another workload. Dividing the lower bound by the other workload's time shows how close
// that workload comes to the machine's limit.

#include <torch/torch.h>

#include <cstring>

#include "workload.hpp"

namespace bench {

namespace {

using Floats4 = float __attribute__((vector_size(16)));
using Floats8 = float __attribute__((vector_size(32)));
using Floats16 = float __attribute__((vector_size(64)));

// Multiplies and adds values in registers, so only the core's arithmetic units limit the speed.
// Uses enough independent chains to keep two arithmetic units busy. Each unit has a latency of four
// cycles.
template <class Vector>
__attribute__((always_inline)) inline float multiply_add(int64_t count) {
  constexpr int chains = 12, floats_per_round = chains * sizeof(Vector) / sizeof(float);
  Vector sums[chains] = {}, factor = Vector{} + 0.5F, term = Vector{} + 1.0F;
  asm("" : "+m"(factor), "+m"(term));  // hides the values from the compiler
  for (int64_t i = 0; i < count; i += floats_per_round) {
#pragma GCC unroll 12
    for (int chain = 0; chain < chains; ++chain) sums[chain] = sums[chain] * factor + term;
  }
  for (const auto& sum : sums) factor += sum;
  return factor[0];
}

float multiply_add_baseline(int64_t count) {
  return multiply_add<Floats4>(count);
}
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) float multiply_add_avx2(int64_t count) {
  return multiply_add<Floats8>(count);
}
__attribute__((target("avx512f"))) float multiply_add_avx512(int64_t count) {
  return multiply_add<Floats16>(count);
}
#endif

float widest_multiply_add(int64_t count) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return multiply_add_avx512(count);
  if (__builtin_cpu_supports("fma")) return multiply_add_avx2(count);
#endif
  return multiply_add_baseline(count);
}

// Performs the multiplications and additions needed to multiply two square matrices with `size`
// rows.
Workload product_limit(int64_t size) {
  return {[size] {
    volatile float used = widest_multiply_add(size * size * size);
    (void)used;
  }};
}

Workload copy_limit(int64_t size) {
  const auto from = torch::ones(size), to = torch::zeros(size);
  return {[from, to] { std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes()); }};
}

// Reproduces AdamW's memory traffic by reading the gradient and by reading and writing the
// parameter and two averages. Performs one addition per element.
Workload adamw_limit(int64_t size) {
  std::vector<torch::Tensor> tensors(4);
  for (auto& tensor : tensors) tensor = torch::zeros(size);
  return {[tensors, size] {
    auto* __restrict a = tensors[0].mutable_data_ptr<float>();
    auto* __restrict b = tensors[1].mutable_data_ptr<float>();
    auto* __restrict c = tensors[2].mutable_data_ptr<float>();
    const auto* gradient = tensors[3].const_data_ptr<float>();
    for (int64_t i = 0; i < size; ++i) {
      a[i] += gradient[i];
      b[i] += gradient[i];
      c[i] += gradient[i];
    }
  }};
}

}  // namespace

Workloads limits() {
  return {{"product", product_limit}, {"copy", copy_limit}, {"adamw", adamw_limit}};
}

}  // namespace bench
