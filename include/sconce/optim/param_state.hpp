#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Identifies the parameter to which a state belongs. LibTorch stores states by the address of the
/// parameter. While this object exists, no other tensor can have this address. The object does not
/// keep the parameter's memory alive. Not for direct use.
class StateOwner {
 public:
  StateOwner() = default;
  explicit StateOwner(const torch::Tensor& parameter) : address_(parameter.getIntrusivePtr()) {}

 private:
  using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> address_{Impl()};
};

/// Base class for the per-parameter state of the optimizer `Class`. A table in the source file that
/// implements `Class` lists the tensors in `Derived` and their keys.
template <class Class, class Derived>
struct TableParamState : torch::optim::OptimizerCloneableParamState<Derived> {
  StateOwner owner = {};  ///< the parameter

  /// Reads the state from an archive, including an archive written by LibTorch's optimizer with the
  /// same name, if it exists.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state to an archive, in the format of LibTorch's optimizer with the same name, if
  /// it exists.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

}  // namespace sconce::optim
