#pragma once

#include <vector>

#include "sconce/optim/decay_groups.hpp"
#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// Base class of the optimizer `Class`: its constructors.
template <class Class, class ClassOptions>
class OptimizerOf : public Optimizer {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `extra` names kernels that LibTorch does not have for the class;
  /// - `Kernels::fused` is given, and a parameter is not a dense tensor of a native floating type
  ///   on a device with fused kernels.
  explicit OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                       ClassOptions defaults = {}, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  explicit OptimizerOf(std::vector<torch::Tensor> params, ClassOptions defaults = {},
                       ExtraOptions extra = {});

  /// Makes an optimizer with a group for each weight decay. Otherwise the groups have the options
  /// of `defaults`, whose own weight decay is not used.
  /// @throw c10::Error as above.
  explicit OptimizerOf(const DecayGroups& groups, ClassOptions defaults = {},
                       ExtraOptions extra = {});
};

}  // namespace sconce::optim
