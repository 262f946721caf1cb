#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Identifies the parameter that a state belongs to. LibTorch stores states by the address of the
/// parameter; while this object exists, no other tensor gets that address. It does not keep the
/// parameter's memory alive. Not for direct use.
class StateOwner {
 public:
  StateOwner() = default;
  explicit StateOwner(const torch::Tensor& parameter) : address_(parameter.getIntrusivePtr()) {}

 private:
  using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> address_{Impl()};
};

/// Base class of the state of one parameter in the optimizer `Class`. The table of `Class`, in its
/// source file, lists the tensors of `Derived` and their keys.
template <class Class, class Derived>
struct TableParamState : torch::optim::OptimizerCloneableParamState<Derived> {
  StateOwner owner = {};  ///< the parameter

  /// Reads the state from an archive, including one of LibTorch's optimizer of the same name, if
  /// there is one.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state to an archive, in the format of LibTorch's optimizer of the same name, if
  /// there is one.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

}  // namespace sconce::optim
