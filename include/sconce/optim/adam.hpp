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

  // Called by the constructors of Adam and AdamW, which alone can read their options.
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

/// Adam by LibTorch's options and groups and by the kernels that Python has. `torch::save` and
/// `torch::load` take it; the archives are those of `torch::optim::Adam`.
/// Python: `torch.optim.Adam`.
class Adam : public AdamBase {
 public:
  /// @throw c10::Error if an option of `defaults` or of a group is not one that Python takes, if
  /// `Kernels::fused` is asked for and a parameter is not dense, of a native floating type, and on
  /// a device that has fused kernels, or if `Kernels::foreach` is asked for with a tensor lr.
  explicit Adam(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                torch::optim::AdamOptions defaults = {}, ExtraOptions extra = {});

  /// The same with one group of parameters.
  explicit Adam(std::vector<torch::Tensor> params, torch::optim::AdamOptions defaults = {},
                ExtraOptions extra = {});

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  AdamHyperparameters hyperparameters(const Options& options) const override;
  void visit_options(Options& options, StateVisitor& state) const override;
};

/// Adam whose weights decay by themselves, not through the gradient; the archives are those of
/// `torch::optim::AdamW`. Python: `torch.optim.AdamW`.
class AdamW : public AdamBase {
 public:
  /// @throw c10::Error where `Adam` would.
  explicit AdamW(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                 torch::optim::AdamWOptions defaults = {}, ExtraOptions extra = {});

  /// The same with one group of parameters.
  explicit AdamW(std::vector<torch::Tensor> params, torch::optim::AdamWOptions defaults = {},
                 ExtraOptions extra = {});

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  AdamHyperparameters hyperparameters(const Options& options) const override;
  void visit_options(Options& options, StateVisitor& state) const override;
};

}  // namespace sconce::optim
