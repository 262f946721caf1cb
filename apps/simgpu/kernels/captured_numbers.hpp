#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace simgpu {

/// A CPU number that was passed to a captured operator. Replays use the copy.
class CapturedNumber {
 public:
  CapturedNumber(const at::Tensor& number, const at::Tensor& copy);

  /// Reports the number if the program has changed it since the capture.
  /// @throw std::runtime_error if races are configured to throw.
  void check(const char* operator_name) const;

 private:
  c10::weak_intrusive_ptr<c10::TensorImpl> number_;  // the graph does not extend its lifetime
  at::Tensor copy_;
};

using CapturedNumbers = std::vector<CapturedNumber>;

}  // namespace simgpu
