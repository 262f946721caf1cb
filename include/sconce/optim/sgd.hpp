#pragma once

#include <torch/optim/sgd.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// What SGD keeps of one parameter. It saves and loads as LibTorch's own `SGDParamState`.
struct SGDParamState : torch::optim::OptimizerCloneableParamState<SGDParamState> {
  torch::Tensor momentum_buffer = {};  ///< like the parameter, or like its sparse gradients;
                                       ///< undefined before the first step

  /// 1 while every step so far was skipped, else 0: 0-dim float32 on the parameter's device. Only
  /// where dampening makes the first step another one than those after it; else undefined.
  torch::Tensor first_step_pending = {};

  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Stochastic gradient descent with momentum, dampening, Nesterov momentum and weight decay, by
/// LibTorch's options and groups and by the kernels that Python has. `torch::save` and
/// `torch::load` take it; the archives are those of `torch::optim::SGD`.
/// A first step that is skipped leaves a momentum buffer of zeros, and the next one counts as the
/// first. Python: `torch.optim.SGD`.
class SGD : public Optimizer {
 public:
  /// @throw c10::Error if an option of `defaults` or of a group is not one that Python takes, or if
  /// `Kernels::fused` is asked for and a parameter is not dense, of a native floating type, and on
  /// a device that has fused kernels.
  SGD(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
      torch::optim::SGDOptions defaults, ExtraOptions extra = {});

  /// The same with one group of parameters.
  SGD(std::vector<torch::Tensor> params, torch::optim::SGDOptions defaults,
      ExtraOptions extra = {});

  void save(torch::serialize::OutputArchive& archive) const override;
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
