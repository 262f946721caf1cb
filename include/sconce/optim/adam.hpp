#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// State of one parameter in Adam and AdamW. Its archives are those of LibTorch's
/// `AdamParamState`, whose step count is an integer.
struct AdamParamState : torch::optim::OptimizerCloneableParamState<AdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels, on the
                            ///< CPU otherwise, as in Python
  torch::Tensor exp_avg = {};         ///< like the parameter
  torch::Tensor exp_avg_sq = {};      ///< like the parameter
  torch::Tensor max_exp_avg_sq = {};  ///< like the parameter; undefined without amsgrad
  StateOwner owner = {};              ///< the parameter

  /// Reads the state from an archive of LibTorch.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the state into an archive of LibTorch.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// Options of Adam and AdamW in one type; LibTorch has a type for each.
struct AdamHyperparameters {
  double lr = 1e-3;                     ///< learning rate
  double beta1 = 0.9;                   ///< decay of the mean of the gradients
  double beta2 = 0.999;                 ///< decay of the mean of their squares
  double eps = 1e-8;                    ///< number added to the denominator
  double weight_decay = 0;              ///< factor of the weight decay
  bool amsgrad = false;                 ///< whether to use the maximum of the means of the squares
  bool decoupled_weight_decay = false;  ///< true for AdamW: the decay is not part of the gradient
};

/// Base class of Adam and AdamW, without the types of their options and the decay of the weights.
/// Not for direct use.
class AdamBase : public Optimizer {
 protected:
  AdamBase(std::string name, const std::vector<torch::optim::OptimizerParamGroup>& groups,
           std::unique_ptr<torch::optim::OptimizerOptions> defaults, ExtraOptions extra);

  // The constructors of AdamOf call this.
  void check_construction();

  virtual AdamHyperparameters hyperparameters(const Options& options) const = 0;

  void check(const Options& options) const override;
  bool takes_sparse_gradients() const override { return false; }
  bool prepare_group(size_t index) override;
  void step_group(size_t index, const Amp& amp) override;
  void state_replaced() override;
  Tensors state_tensors(const ParamState& state) const override;
  std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                         const torch::Tensor& parameter) const override;

 private:
  struct Plans;
  AdamParamState& state_for(size_t group, size_t index, bool amsgrad);

  std::shared_ptr<Plans> plans_;  // owned alone; a shared_ptr needs no complete type here
};

/// Adam, in which the weight decay is part of the gradient, and AdamW, in which it is not. They
/// take LibTorch's options and groups, and have Python's kernels. `torch::save` and `torch::load`
/// write and read the archives of `torch::optim::Adam` and `torch::optim::AdamW`.
template <class AdamOptions>
class AdamOf : public AdamBase {
 public:
  /// @throw c10::Error if:
  /// - an option of `defaults` or of a group has a value that Python refuses;
  /// - `Kernels::fused` is given, and a parameter is not a dense tensor of a native floating type
  ///   on a device with fused kernels;
  /// - `Kernels::foreach` is given together with a learning rate that is a tensor.
  explicit AdamOf(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                  AdamOptions defaults = {}, ExtraOptions extra = {});

  /// Makes an optimizer with one group of parameters.
  /// @throw c10::Error as above, and if `params` is empty.
  explicit AdamOf(std::vector<torch::Tensor> params, AdamOptions defaults = {},
                  ExtraOptions extra = {});

  /// Writes an archive of LibTorch's optimizer; `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads an archive of LibTorch's optimizer; `torch::load` calls it. If it throws, the optimizer
  /// has not changed.
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  AdamHyperparameters hyperparameters(const Options& options) const override;
  void visit_options(Options& options, StateVisitor& state) const override;
};

extern template class AdamOf<torch::optim::AdamOptions>;
extern template class AdamOf<torch::optim::AdamWOptions>;

/// Python: `torch.optim.Adam`.
class Adam : public AdamOf<torch::optim::AdamOptions> {
 public:
  using AdamOf::AdamOf;
};

/// Python: `torch.optim.AdamW`.
class AdamW : public AdamOf<torch::optim::AdamWOptions> {
 public:
  using AdamOf::AdamOf;
};

}  // namespace sconce::optim
