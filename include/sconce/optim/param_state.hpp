#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Identifies the parameter that a state belongs to. LibTorch's optimizer states are keyed by
/// parameter address. While this object exists, no other tensor can be allocated at the parameter's
/// address. The object does not keep the parameter's memory alive. Not for direct use.
class StateOwner {
 public:
  StateOwner() = default;
  explicit StateOwner(const torch::Tensor& parameter) : address_(parameter.getIntrusivePtr()) {}

 private:
  using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> address_{Impl()};
};

/// Base class for the `Class` optimizer's per-parameter state. A table in the source file that
/// implements `Class` lists the tensors in `Derived` and their keys.
template <class Class, class Derived>
struct TableParamState : torch::optim::OptimizerCloneableParamState<Derived> {
  StateOwner owner = {};  ///< the parameter

  /// Reads the state from an archive written by this class or, if LibTorch has an optimizer with
  /// the same name, by LibTorch.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state to an archive. If LibTorch has an optimizer with the same name, the archive
  /// uses that optimizer's format.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

}  // namespace sconce::optim
