#pragma once

#include <torch/arg.h>

#include <memory>
#include <tuple>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// Options of NAdam, with Python's names and defaults.
struct NAdamOptions : torch::optim::OptimizerCloneableOptions<NAdamOptions> {
  using Betas = std::tuple<double, double>;

  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;                 ///< learning rate
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);  ///< decay of the mean of the gradients, and of
                                                ///< the mean of their squares
  TORCH_ARG(double, eps) = 1e-8;                ///< number added to the denominator
  TORCH_ARG(double, weight_decay) = 0;          ///< factor of the weight decay
  TORCH_ARG(double, momentum_decay) = 4e-3;     ///< how fast the momentum reaches the first beta
  TORCH_ARG(bool, decoupled_weight_decay) = false;  ///< whether the weight decay is no part of the
                                                    ///< gradient, as in AdamW

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { this->lr(lr); }

  /// Reads the options from an archive of NAdam.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the options into an archive of NAdam.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// State of one parameter in NAdam.
struct NAdamParamState : torch::optim::OptimizerCloneableParamState<NAdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU if the
                            ///< learning rate is a tensor on a GPU and the kernels are foreach
  torch::Tensor mu_product = {};  ///< product of the momenta of all steps, like `step`
  torch::Tensor exp_avg = {};     ///< like the parameter
  torch::Tensor exp_avg_sq = {};  ///< like the parameter
  StateOwner owner = {};          ///< the parameter

  /// Reads the state from an archive of NAdam.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive of NAdam.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Adam with Nesterov momentum, whose weight decay may be that of AdamW. It has Python's kernels:
/// foreach and the loop. `torch::save` and `torch::load` write and read its archives; LibTorch has
/// no NAdam. Python: `torch.optim.NAdam`.
class NAdam : public Optimizer {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `Kernels::fused` is given, since LibTorch has no fused kernels for NAdam.
  explicit NAdam(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                 NAdamOptions defaults = {}, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  explicit NAdam(std::vector<torch::Tensor> params, NAdamOptions defaults = {},
                 ExtraOptions extra = {});

  /// Writes an archive; `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads an archive; `torch::load` calls it. If it throws, the optimizer has not changed.
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

  std::shared_ptr<Plans> plans_;  // owned alone; a shared_ptr needs no complete type here
};

}  // namespace sconce::optim
