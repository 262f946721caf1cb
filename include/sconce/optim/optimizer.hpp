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

class Algorithm;   // the algorithm of an optimizer class, in src/
class GroupRates;  // learning rates stored in tensors, in src/

/// Releases the parameter gradients of any optimizer. LibTorch's own `zero_grad` first detaches
/// each gradient, which requires two operator calls.
/// Python: `optimizer.zero_grad()`.
void zero_grad(torch::optim::Optimizer& optimizer);

/// Base class for all sconce optimizers. This class selects the kernels and stores the state in the
/// same format as Python.
///
///     sconce::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
///     optimizer.zero_grad();
///     loss.backward();
///     optimizer.step();
///
/// A step skips parameters without a gradient. If a parameter appears twice in a group because the
/// model contains a layer twice, the parameter is updated only once. A step does not read values on
/// the host, with three exceptions:
/// - the fused kernels of Adam and Adagrad on the CPU read the step counts;
/// - Adagrad with sparse gradients and `lr_decay` reads the step counts from a GPU;
/// - a learning rate stored in a tensor is read unless it is on a GPU and the fastest kernels of
///   the class accept it.
///
/// Group options are merged with the optimizer's options as in LibTorch. With LibTorch 2.15, a
/// group option that still has its type's default value is set to the optimizer's value. LibTorch
/// 2.11 does not change a group option that still has its type's default value. You can set any
/// value through `param_groups()[i].options()`.
///
/// The optimizer owns its state and shares the parameter tensors with the model. As in Python, a
/// parameter's state is kept after the parameter is removed from its group. To remove this state,
/// call `state().erase(p.unsafeGetTensorImpl())`. Optimizers cannot be copied or moved, because
/// schedulers and callbacks keep references to them. A function can return an optimizer with
/// `return Adam(...)` or in a `std::unique_ptr`.
class Optimizer : public torch::optim::Optimizer, public AmpScaling {
 public:
  ~Optimizer() override;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Returns the kernels in use, which are never `Kernels::automatic`. Only SGD and Adagrad support
  /// sparse gradients. If the kernels are foreach or chosen automatically, SGD and Adagrad process
  /// sparse gradients with for-loop kernels.
  Kernels kernels() const;

  /// Adds a parameter group. The group's learning rate can be any number, because a schedule might
  /// have decreased it below 0. If a parameter that was removed from a group is added again, it
  /// keeps its state.
  /// Python: `optimizer.add_param_group`.
  /// @throw c10::Error if the constructor would reject the other options or the parameters. In that
  /// case, the optimizer is unchanged.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Releases the gradients of all parameters, or sets them to zero if `set_to_none` is false.
  /// Python: `optimizer.zero_grad`.
  void zero_grad(bool set_to_none = true);

  /// Performs one optimization step. If `closure` is given, calls it with gradients enabled and
  /// returns its result, which is the loss. If a parameter's strides, type, or device has changed,
  /// the parameter's state is converted to match.
  /// @throw c10::Error, before any parameter is updated, if:
  /// - a gradient is sparse and the kernels do not support sparse gradients;
  /// - a gradient or a state differs in size from its parameter (to remove the state of a parameter
  ///   `p`, call `state().erase(p.unsafeGetTensorImpl())`);
  /// - fused kernels are in use and no longer support a parameter;
  /// - a parameter group was added through LibTorch's base class and `add_param_group` would reject
  ///   it.
  torch::Tensor step(LossClosure closure = nullptr) final;

  bool step_supports_amp_scaling() const final;
  void step_with_amp_scaling(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) final;

  /// Returns whether a `CapturedStep` can replay the step with a new learning rate. On the CPU, the
  /// result is always true, and all other options can change as well. On a GPU, the learning rate
  /// must be a GPU tensor, and the optimizer must use its class's fastest kernels, which are fused
  /// kernels if available and foreach kernels otherwise. In a GPU graph, all other options keep
  /// their captured values.
  /// Python: the `capturable` argument.
  bool is_capturable() const;

  /// Writes changed learning rates from the group options to the groups' learning rate tensors, if
  /// any. Optimizer steps and scheduler steps call this function. If you change the options
  /// yourself, call this function before you replay a graph of the step. This function does not
  /// read tensor values on the host.
  void write_lr();

  /// Calls `write_lr`, then copies changed learning rate tensors back to the options, for example
  /// after `ExtraOptions::lr` has been filled with a new value. This function does not detect
  /// changes made by a captured step. Schedulers and reports call this function.
  void read_lr();

  /// The values that schedulers store for a parameter group, keyed by the same names as in Python,
  /// such as `initial_lr`.
  using GroupValues = std::map<std::string, double>;

  /// Returns the groups' scheduler values, which all of this optimizer's schedulers share. As in
  /// Python, `state_dict` contains these values. LibTorch's archives do not contain these values.
  const std::shared_ptr<std::vector<GroupValues>>& group_values() const { return group_values_; }

  /// Returns the state and the options, with the same keys as Python's `state_dict()`: {"state":
  /// {index: {name: tensor}}, "param_groups": [{option: value, "params": [index]}]}. As in Python,
  /// the tensors are not copied, except for the step counts.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Returns the "param_groups" entry of `state_dict`. A resumed fit compares these groups with the
  /// groups in the checkpoint.
  [[nodiscard]] c10::IValue options() const;

  /// Loads the state and the options from a dict that `state_dict()` returned in C++ or in Python.
  /// Tensors are copied and converted to the parameters' types and devices. The kernels do not
  /// change. Scheduler values that are missing from the dict are kept. The learning rate can be any
  /// number, because a schedule might have decreased it below 0.
  /// @throw c10::Error if the groups, a size, or `maximize` does not match this optimizer, if an
  /// option is invalid, or if a key is missing. In these cases, the optimizer is unchanged.
  void load_state_dict(const c10::IValue& state_dict);

  /// Writes an archive. If LibTorch has an optimizer with the same name, that optimizer can read
  /// the archive. Called by `torch::save`.
  void save(torch::serialize::OutputArchive& archive) const final;

  /// Reads an archive written by this class or by LibTorch's optimizer with the same name. Called
  /// by `torch::load`. If this function throws, the optimizer is unchanged.
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
  void drop_duplicates(ParamGroup& group);
  void choose_again();
  void renew_states();
  bool has_sparse_gradient() const;
  void step_all(const torch::Tensor& grad_scale, const torch::Tensor& found_inf);
  void step_now(const torch::Tensor& grad_scale, const torch::Tensor& found_inf);

  // LibTorch owns the groups and allows any code to change the list. Therefore, each step looks up
  // the data for a group: the learning rate by the first parameter, and the plan by all parameters.
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<GroupRates> rates_;  // null if learning rates are numbers
  size_t checked_groups_ = 0;
  std::shared_ptr<std::vector<GroupValues>> group_values_;  // may be shorter than the groups
};

}  // namespace sconce::optim
