#pragma once

#include <vector>

#include "sconce/optim/decay_groups.hpp"
#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// Base class that provides the `Class` optimizer's constructors.
template <class Class, class ClassOptions>
class OptimizerOf : public Optimizer {
 public:
  /// Constructs an optimizer with the given parameter groups.
  /// @throw c10::Error if:
  /// - an option in `defaults` or in a group has a value that Python rejects;
  /// - `extra` requests kernels that LibTorch does not provide for the class;
  /// - `Kernels::fused` is requested, and a parameter is not a dense tensor of a native
  ///   floating-point type on a device with fused kernels.
  explicit OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                       ClassOptions defaults = {}, ExtraOptions extra = {});

  /// Constructs an optimizer with a single parameter group.
  /// @throw c10::Error under the same conditions, or if `params` is empty.
  explicit OptimizerOf(std::vector<torch::Tensor> params, ClassOptions defaults = {},
                       ExtraOptions extra = {});

  /// Constructs an optimizer with one parameter group per weight decay. All other group options are
  /// taken from `defaults`. The weight decay in `defaults` is ignored.
  /// @throw c10::Error under the same conditions.
  explicit OptimizerOf(const DecayGroups& groups, ClassOptions defaults = {},
                       ExtraOptions extra = {});
};

}  // namespace sconce::optim
