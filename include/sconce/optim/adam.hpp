#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// What Adam and AdamW keep of one parameter. It saves and loads as LibTorch's own
/// `AdamParamState`, whose step count is an integer.
struct AdamParamState : torch::optim::OptimizerCloneableParamState<AdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32; with fused kernels on the parameter's device, else
                            ///< on the CPU, as in Python
  torch::Tensor exp_avg = {};         ///< like the parameter
  torch::Tensor exp_avg_sq = {};      ///< like the parameter
  torch::Tensor max_exp_avg_sq = {};  ///< like the parameter; undefined without amsgrad

  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// The options of Adam and AdamW, whose types LibTorch has twice.
struct AdamHyperparameters {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool decoupled_weight_decay = false;
};

/// What Adam and AdamW share: all but the types of their options and how the weights decay.
class AdamBase : public Optimizer {
 protected:
  AdamBase(std::string name, const std::vector<torch::optim::OptimizerParamGroup>& groups,
           std::unique_ptr<torch::optim::OptimizerOptions> defaults, ExtraOptions extra);

  // Called by the constructors of AdamOf, which alone can read its options.
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

/// What Adam is, whose weights decay through the gradient, and AdamW, whose weights decay by
/// themselves: optimizers by LibTorch's options and groups and by the kernels that Python has.
/// `torch::save` and `torch::load` take them; the archives are those of `torch::optim::Adam` and
/// `torch::optim::AdamW`.
template <class AdamOptions>
class AdamOf : public AdamBase {
 public:
  /// @throw c10::Error if an option of `defaults` or of a group is not one that Python takes, if
  /// `Kernels::fused` is asked for and a parameter is not dense, of a native floating type, and on
  /// a device that has fused kernels, or if `Kernels::foreach` is asked for with a tensor lr.
  explicit AdamOf(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                  AdamOptions defaults = {}, ExtraOptions extra = {});

  /// The same with one group of parameters.
  explicit AdamOf(std::vector<torch::Tensor> params, AdamOptions defaults = {},
                  ExtraOptions extra = {});

  void save(torch::serialize::OutputArchive& archive) const override;
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
