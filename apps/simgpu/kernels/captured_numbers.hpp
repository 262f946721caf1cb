#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace simgpu {

/// A number on the CPU that a captured operator was called with. Replays use the copy.
class CapturedNumber {
 public:
  CapturedNumber(const at::Tensor& number, const at::Tensor& copy);

  /// Reports that the program has changed its number since the capture.
  /// @throw std::runtime_error if races are to be thrown.
  void check(const char* operator_name) const;

 private:
  c10::weak_intrusive_ptr<c10::TensorImpl> number_;  // lives no longer than without the graph
  at::Tensor copy_;
};

using CapturedNumbers = std::vector<CapturedNumber>;

}  // namespace simgpu
