#include "simgpu/kernels/captured_numbers.hpp"

#include <c10/util/StringUtil.h>

#include <cstring>

#include "simgpu/kernels/below_autograd.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

CapturedNumber::CapturedNumber(const at::Tensor& number, const at::Tensor& copy)
    : number_(number.getIntrusivePtr()), copy_(copy) {}

void CapturedNumber::check(const char* operator_name) const {
  const BelowAutograd below;
  auto locked = number_.lock();
  if (!locked) return;
  const at::Tensor number(std::move(locked));
  // Compares the values byte by byte, because NaN does not compare equal to itself.
  if (std::memcmp(number.const_data_ptr(), copy_.const_data_ptr(), copy_.nbytes()) == 0) return;
  report_race(c10::str("simulated GPUs: during a graph replay, ", operator_name,
                       " uses the captured value ", copy_.item(),
                       " of a one-element CPU tensor, but the current value is ", number.item()));
}

}  // namespace simgpu
