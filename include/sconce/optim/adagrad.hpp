#pragma once

#include <torch/optim/adagrad.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// State of one parameter in Adagrad. Its archives are those of LibTorch's `AdagradParamState`,
/// whose step count is an integer.
struct AdagradParamState : torch::optim::OptimizerCloneableParamState<AdagradParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels, on the
                            ///< CPU otherwise, as in Python
  torch::Tensor sum = {};   ///< sum of the squares of the gradients, like the parameter
  StateOwner owner = {};    ///< the parameter

  /// Reads the state from an archive of LibTorch.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive of LibTorch.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Adagrad with weight decay and a decay of the learning rate. It takes LibTorch's options and
/// groups, and has Python's kernels. `torch::save` and `torch::load` write and read the archives of
/// `torch::optim::Adagrad`.
///
/// The constructor makes the states, with the optimizer's `initial_accumulator_value`. Parameters
/// that are added later, or are still empty like those of a lazy layer, get theirs in their first
/// step. Sparse gradients need a weight decay of 0, and kernels other than a given
/// `Kernels::fused`. If fused kernels were chosen automatically and there is an `lr_decay`, the
/// host reads the step counts of parameters on a GPU with sparse gradients.
/// Python: `torch.optim.Adagrad`.
class Adagrad : public Optimizer {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `Kernels::fused` is given, and a parameter is not a dense tensor of a native floating type
  ///   on a device with fused kernels.
  explicit Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                   torch::optim::AdagradOptions defaults = {}, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  explicit Adagrad(std::vector<torch::Tensor> params, torch::optim::AdagradOptions defaults = {},
                   ExtraOptions extra = {});

  /// Writes an archive of `torch::optim::Adagrad`; `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads an archive of `torch::optim::Adagrad`; `torch::load` calls it. If it throws, the
  /// optimizer has not changed.
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  void check(const Options& options) const override;
  bool takes_sparse_gradients() const override { return extra().kernels != Kernels::fused; }
  bool python_has_fused() const override;
  bool prepare_group(size_t index) override;
  void step_group(size_t index, const Amp& amp) override;
  void state_replaced() override;
  Tensors state_tensors(const ParamState& state) const override;
  std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                         const torch::Tensor& parameter) const override;
  void visit_options(Options& options, StateVisitor& state) const override;

 private:
  struct Plans;
  std::unique_ptr<AdagradParamState> fresh_state(const torch::Tensor& parameter) const;

  std::shared_ptr<Plans> plans_;  // owned alone; a shared_ptr needs no complete type here
};

}  // namespace sconce::optim
