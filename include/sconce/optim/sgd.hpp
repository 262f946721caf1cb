#pragma once

#include <torch/optim/sgd.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// State of one parameter in SGD. Its archives are those of LibTorch's `SGDParamState`.
struct SGDParamState : torch::optim::OptimizerCloneableParamState<SGDParamState> {
  torch::Tensor momentum_buffer = {};  ///< like the parameter, or like its sparse gradients;
                                       ///< undefined before the first step

  /// 1 while every step so far was skipped, otherwise 0. A 0-dim float32 tensor on the parameter's
  /// device, or undefined without dampening: only dampening treats the first step differently.
  torch::Tensor first_step_pending = {};

  StateOwner owner = {};  ///< the parameter

  /// Reads the state from an archive of LibTorch.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive of LibTorch.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Stochastic gradient descent with momentum, dampening, Nesterov momentum and weight decay. It
/// takes LibTorch's options and groups, and has Python's kernels. `torch::save` and `torch::load`
/// write and read the archives of `torch::optim::SGD`. If the first step is skipped, the momentum
/// buffer is zero, and the next step counts as the first. Python: `torch.optim.SGD`.
class SGD : public Optimizer {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `Kernels::fused` is given, and a parameter is not a dense tensor of a native floating type
  ///   on a device with fused kernels.
  SGD(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
      torch::optim::SGDOptions defaults, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  SGD(std::vector<torch::Tensor> params, torch::optim::SGDOptions defaults,
      ExtraOptions extra = {});

  /// Writes an archive of `torch::optim::SGD`; `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads an archive of `torch::optim::SGD`; `torch::load` calls it. If it throws, the optimizer
  /// has not changed.
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  void check(const Options& options) const override;
  bool takes_sparse_gradients() const override { return extra().kernels != Kernels::fused; }
  bool prepare_group(size_t index) override;
  void step_group(size_t index, const Amp& amp) override;
  void state_replaced() override;
  Tensors state_tensors(const ParamState& state) const override;
  std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                         const torch::Tensor& parameter) const override;
  void visit_options(Options& options, StateVisitor& state) const override;

 private:
  struct Plans;
  SGDParamState& state_for(size_t group, size_t index);

  std::shared_ptr<Plans> plans_;  // owned alone; a shared_ptr needs no complete type here
};

}  // namespace sconce::optim
