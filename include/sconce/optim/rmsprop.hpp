#pragma once

#include <torch/optim/rmsprop.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// State of one parameter in RMSprop. Its archives are those of LibTorch's `RMSpropParamState`,
/// whose step count is an integer.
struct RMSpropParamState : torch::optim::OptimizerCloneableParamState<RMSpropParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU if the
                            ///< learning rate is a tensor on a GPU and the kernels are foreach
  torch::Tensor square_avg = {};       ///< like the parameter
  torch::Tensor momentum_buffer = {};  ///< like the parameter; undefined without momentum
  torch::Tensor grad_avg = {};         ///< like the parameter; undefined unless centered
  StateOwner owner = {};               ///< the parameter

  /// Reads the state from an archive of LibTorch.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive of LibTorch.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// RMSprop with momentum, weight decay and the centered form. It takes LibTorch's options and
/// groups, and has Python's kernels: foreach and the loop. `torch::save` and `torch::load` write
/// and read the archives of `torch::optim::RMSprop`. Python: `torch.optim.RMSprop`.
class RMSprop : public Optimizer {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `Kernels::fused` is given, since LibTorch has no fused kernels for RMSprop.
  explicit RMSprop(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                   torch::optim::RMSpropOptions defaults = {}, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  explicit RMSprop(std::vector<torch::Tensor> params, torch::optim::RMSpropOptions defaults = {},
                   ExtraOptions extra = {});

  /// Writes an archive of `torch::optim::RMSprop`; `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads an archive of `torch::optim::RMSprop`; `torch::load` calls it. If it throws, the
  /// optimizer has not changed.
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  void check(const Options& options) const override;
  bool takes_sparse_gradients() const override { return false; }
  bool prepare_group(size_t index) override;
  void step_group(size_t index, const Amp& amp) override;
  void state_replaced() override;
  Tensors state_tensors(const ParamState& state) const override;
  std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                         const torch::Tensor& parameter) const override;
  void visit_options(Options& options, StateVisitor& state) const override;

 private:
  struct Plans;
  RMSpropParamState& state_for(size_t group, size_t index);

  std::shared_ptr<Plans> plans_;  // owned alone; a shared_ptr needs no complete type here
};

}  // namespace sconce::optim
