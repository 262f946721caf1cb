// Matrix products with an explicit result dtype.

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Scalar;
using at::ScalarType;
using at::Tensor;

Tensor mm_of(const Tensor& a, const Tensor& b, ScalarType dtype) {
  return at::mm(a.to(dtype), b.to(dtype));
}

Tensor bmm_of(const Tensor& a, const Tensor& b, ScalarType dtype) {
  return at::bmm(a.to(dtype), b.to(dtype));
}

Tensor addmm_of(const Tensor& self, const Tensor& a, const Tensor& b, ScalarType dtype,
                const Scalar& beta, const Scalar& alpha) {
  return at::addmm(self.to(dtype), a.to(dtype), b.to(dtype), beta, alpha);
}

Tensor baddbmm_of(const Tensor& self, const Tensor& a, const Tensor& b, ScalarType dtype,
                  const Scalar& beta, const Scalar& alpha) {
  return at::baddbmm(self.to(dtype), a.to(dtype), b.to(dtype), beta, alpha);
}

Tensor& mm_of_out(const Tensor& a, const Tensor& b, ScalarType dtype, Tensor& out) {
  return out.copy_(mm_of(a, b, dtype));
}

Tensor& bmm_of_out(const Tensor& a, const Tensor& b, ScalarType dtype, Tensor& out) {
  return out.copy_(bmm_of(a, b, dtype));
}

Tensor& addmm_of_out(const Tensor& self, const Tensor& a, const Tensor& b, ScalarType dtype,
                     const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return out.copy_(addmm_of(self, a, b, dtype, beta, alpha));
}

Tensor& baddbmm_of_out(const Tensor& self, const Tensor& a, const Tensor& b, ScalarType dtype,
                       const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return out.copy_(baddbmm_of(self, a, b, dtype, beta, alpha));
}

}  // namespace

void add_products(OwnKernels& kernels) {
  add_own(kernels, "mm", "dtype", &mm_of);
  add_own(kernels, "mm", "dtype_out", &mm_of_out);
  add_own(kernels, "bmm", "dtype", &bmm_of);
  add_own(kernels, "bmm", "dtype_out", &bmm_of_out);
  add_own(kernels, "addmm", "dtype", &addmm_of);
  add_own(kernels, "addmm", "dtype_out", &addmm_of_out);
  add_own(kernels, "baddbmm", "dtype", &baddbmm_of);
  add_own(kernels, "baddbmm", "dtype_out", &baddbmm_of_out);
}

}  // namespace simgpu
