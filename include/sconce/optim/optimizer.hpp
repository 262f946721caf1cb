#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/optim/amp_scaling.hpp"
#include "sconce/optim/extra_options.hpp"
#include "sconce/optim/param_state.hpp"

namespace sconce::optim {

class Algorithm;   // what distinguishes a class, in src/
class GroupRates;  // learning rates that are tensors, in src/

/// Drops the gradients of all parameters of any optimizer. LibTorch's own `zero_grad` detaches each
/// gradient first, which takes two operator calls. Python: `optimizer.zero_grad()`.
void zero_grad(torch::optim::Optimizer& optimizer);

/// Base class of all optimizers of sconce: the choice of kernels, and the state in Python's form. A
/// step skips parameters without a gradient. A parameter that occurs twice in a group, as a layer
/// that a model contains twice gives it, is stepped once. The host reads nothing, except step
/// counts on the CPU by the fused kernels of Adam and Adagrad, those on a GPU for sparse gradients
/// and Adagrad's lr_decay, and a learning rate that is a tensor, unless the class's fastest kernels
/// take it on a GPU. The options of a group are merged with the optimizer's as LibTorch does it:
/// with 2.15 an option with the default value of its type gets the optimizer's value, with 2.11 it
/// does not. `param_groups()[i].options()` sets any value.
///
/// The optimizer owns its states and holds its parameters as tensors, which share the model's. The
/// state of a parameter that is no longer in a group stays, as in Python; drop it by
/// `state().erase(p.unsafeGetTensorImpl())`. Schedulers and callbacks keep references to the
/// optimizer, so it can be neither copied nor moved: a function returns it by `return Adam(...)`,
/// or in a `std::unique_ptr`.
class Optimizer : public torch::optim::Optimizer, public AmpScaling {
 public:
  ~Optimizer() override;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Returns the kernels in use, never `Kernels::automatic`. Sparse gradients, which only SGD and
  /// Adagrad take, are stepped by the loop if the kernels are foreach or were chosen automatically.
  Kernels kernels() const;

  /// Adds a group of parameters. Its learning rate may be any number, because a schedule may have
  /// lowered it below 0. Parameters that a group no longer has may be added again, and keep their
  /// state. Python: `optimizer.add_param_group`.
  /// @throw c10::Error if the constructor would refuse the other options or the parameters; the
  /// optimizer has not changed.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Drops the gradients of all parameters, or sets them to zero if `set_to_none` is false.
  /// Python: `optimizer.zero_grad`.
  void zero_grad(bool set_to_none = true);

  /// Makes one step. Calls `closure`, if given, with gradients enabled, and returns its result, the
  /// loss. If a parameter now has other strides, another type or another device, its state follows.
  /// @throw c10::Error, before any parameter is stepped, if:
  /// - a gradient is sparse and the kernels do not take sparse gradients;
  /// - a gradient or a state has other sizes than its parameter; drop the state of a parameter `p`
  ///   by `state().erase(p.unsafeGetTensorImpl())`;
  /// - fused kernels are in use and no longer take a parameter;
  /// - a parameter group that LibTorch's class added is one that `add_param_group` refuses.
  torch::Tensor step(LossClosure closure = nullptr) final;

  bool step_supports_amp_scaling() const final;
  void step_with_amp_scaling(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) final;

  /// Returns whether a CapturedStep can replay the step with a new learning rate. On the CPU it
  /// always can, and all other options may change too. On GPUs this needs a learning rate that is a
  /// tensor on a GPU and the class's fastest kernels, which are fused or, without fused kernels,
  /// foreach. The graph keeps the values of all other options.
  /// Python: the argument `capturable`.
  bool is_capturable() const;

  /// Writes changed learning rates of the groups' options into the groups' tensors, if there are
  /// any. Each step of the optimizer and of a scheduler does this. If you set the options yourself,
  /// call it before a graph of the step is replayed. The host reads nothing.
  void write_lr();

  /// Does the same, and then reads into the options the tensors that were changed, such as by
  /// filling `ExtraOptions::lr`, except by a captured step. Schedulers and reports do this.
  void read_lr();

  /// Values of schedulers for a parameter group, by Python's names, such as `initial_lr`.
  using GroupValues = std::map<std::string, double>;

  /// Returns the values of the groups, which the schedulers of this optimizer share. `state_dict`
  /// has them, as in Python; LibTorch's archives do not.
  const std::shared_ptr<std::vector<GroupValues>>& group_values() const { return group_values_; }

  /// Returns {"state": {index: {name: tensor}}, "param_groups": [{option: value, "params":
  /// [index]}]} with the keys of Python's `state_dict()`. The tensors are the optimizer's own, as
  /// in Python, except the step counts, which are copies.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Returns the "param_groups" of `state_dict`, which a resumed fit compares with the file's.
  [[nodiscard]] c10::IValue options() const;

  /// Loads the state and the options of a dict from `state_dict()`, or from Python. Tensors are
  /// copied to the parameters' types and devices. The kernels do not change, nor do values of
  /// schedulers that the dict does not have. A learning rate may be any number, since a schedule
  /// may have lowered it below 0.
  /// @throw c10::Error if the groups, a size or `maximize` differ from this optimizer's, an option
  /// is invalid, or a key is missing; the optimizer has not changed.
  void load_state_dict(const c10::IValue& state_dict);

  /// Writes an archive, which LibTorch's optimizer of this name reads, if there is one;
  /// `torch::save` calls it.
  void save(torch::serialize::OutputArchive& archive) const final;

  /// Reads an archive, also of LibTorch's optimizer of this name; `torch::load` calls it. If it
  /// throws, the optimizer has not changed.
  void load(torch::serialize::InputArchive& archive) final;

 protected:
  using Options = torch::optim::OptimizerOptions;
  using ParamGroup = torch::optim::OptimizerParamGroup;

  Optimizer(std::unique_ptr<Algorithm> algorithm, const std::vector<ParamGroup>& groups,
            std::unique_ptr<Options> defaults, ExtraOptions extra);

 private:
  class DictForm;

  void check_new_groups();
  void check_reached(const Options& options) const;
  void drop_repeats(ParamGroup& group);
  void choose_again();
  void renew_states();
  bool has_sparse_gradient() const;
  void step_all(const torch::Tensor& grad_scale, const torch::Tensor& found_inf);
  void step_now(const torch::Tensor& grad_scale, const torch::Tensor& found_inf);

  // LibTorch owns the groups, and lets anyone change the list of them. So what belongs to a group
  // is found again in each step: its rate by its first parameter, its plan by all of them.
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<GroupRates> rates_;  // null if learning rates are numbers
  size_t checked_groups_ = 0;
  std::shared_ptr<std::vector<GroupValues>> group_values_;  // may be shorter than the groups
};

}  // namespace sconce::optim
