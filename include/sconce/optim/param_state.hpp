#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// The parameter of a state. LibTorch keeps a state under the address of its parameter, and as long
/// as this object exists, no other tensor gets that address. It does not keep the parameter's
/// memory. Not for direct use.
class StateOwner {
 public:
  StateOwner() = default;
  explicit StateOwner(const torch::Tensor& parameter) : address_(parameter.getIntrusivePtr()) {}

 private:
  using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> address_{Impl()};
};

/// Base class of the states of one parameter in the optimizer `Class`. The tensors of `Derived` and
/// their keys are listed in the table of `Class`, in its source.
template <class Class, class Derived>
struct TableParamState : torch::optim::OptimizerCloneableParamState<Derived> {
  StateOwner owner = {};  ///< the parameter

  /// Reads the state from an archive, of LibTorch's optimizer if it has this class.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive, of LibTorch's optimizer if it has this class.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

}  // namespace sconce::optim
