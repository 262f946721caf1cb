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

class Algorithm;   // the algorithm of a class, in src/
class GroupRates;  // learning rates stored in tensors, in src/

/// Drops the gradients of all parameters of any optimizer. LibTorch's own `zero_grad` detaches each
/// gradient first, which takes two operator calls.
/// Python: `optimizer.zero_grad()`.
void zero_grad(torch::optim::Optimizer& optimizer);

/// Base class of all sconce optimizers. It selects the kernels and stores the state in Python's
/// form.
///
///     sconce::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
///     optimizer.zero_grad();
///     loss.backward();
///     optimizer.step();
///
/// A step skips parameters without a gradient. A parameter that occurs twice in a group, because
/// the model contains a layer twice, is stepped once. A step reads nothing back to the host, with
/// three exceptions:
/// - the fused kernels of Adam and Adagrad on the CPU read the step counts;
/// - Adagrad with sparse gradients and `lr_decay` reads step counts from a GPU;
/// - a learning rate in a tensor is read, unless the class's fastest kernels accept it on a GPU.
///
/// Group options are merged with the optimizer's options as in LibTorch. With 2.15, a group option
/// that still has its type's default gets the optimizer's value; with 2.11 it does not.
/// `param_groups()[i].options()` sets any value.
///
/// The optimizer owns its state and shares the parameter tensors with the model. As in Python, the
/// state of a parameter that is no longer in a group is kept; drop it with
/// `state().erase(p.unsafeGetTensorImpl())`. Schedulers and callbacks hold references to the
/// optimizer, so it can be neither copied nor moved. A function can return one with
/// `return Adam(...)`, or in a `std::unique_ptr`.
class Optimizer : public torch::optim::Optimizer, public AmpScaling {
 public:
  ~Optimizer() override;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Returns the kernels in use, never `Kernels::automatic`. Sparse gradients, which only SGD and
  /// Adagrad support, are stepped by the loop if the kernels are foreach or were chosen
  /// automatically.
  Kernels kernels() const;

  /// Adds a parameter group. Any number is accepted as its learning rate, because a schedule may
  /// have lowered it below 0. Parameters that were removed from a group may be added again and keep
  /// their state.
  /// Python: `optimizer.add_param_group`.
  /// @throw c10::Error if the constructor would reject the other options or the parameters. The
  /// optimizer is not changed.
  void add_param_group(const torch::optim::OptimizerParamGroup& param_group);

  /// Drops the gradients of all parameters, or zeroes them if `set_to_none` is false.
  /// Python: `optimizer.zero_grad`.
  void zero_grad(bool set_to_none = true);

  /// Performs one optimization step. If `closure` is given, calls it with gradients enabled and
  /// returns its result, the loss. If the strides, type, or device of a parameter have changed, its
  /// state follows.
  /// @throw c10::Error, before any parameter is stepped, if:
  /// - a gradient is sparse and the kernels do not support sparse gradients;
  /// - a gradient or a state has a different size than its parameter (drop the state of a parameter
  ///   `p` with `state().erase(p.unsafeGetTensorImpl())`);
  /// - fused kernels are in use and no longer support a parameter;
  /// - a parameter group was added through LibTorch's class and `add_param_group` would reject it.
  torch::Tensor step(LossClosure closure = nullptr) final;

  bool step_supports_amp_scaling() const final;
  void step_with_amp_scaling(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) final;

  /// Returns whether a `CapturedStep` can replay the step with a new learning rate. On the CPU it
  /// always can, and all other options may change as well. On a GPU, the learning rate must be a
  /// tensor on a GPU, and the class's fastest kernels must be in use: fused kernels, or foreach if
  /// the class has no fused ones. The graph keeps the values of all other options.
  /// Python: the argument `capturable`.
  bool is_capturable() const;

  /// Writes changed learning rates from the group options to the groups' tensors, if there are any.
  /// Each step of the optimizer or of a scheduler does this. If you change the options yourself,
  /// call it before a graph of the step is replayed. Reads nothing back to the host.
  void write_lr();

  /// Does the same as `write_lr`, then reads tensors that were changed, for example by filling
  /// `ExtraOptions::lr`, back into the options. Changes made by a captured step are not read.
  /// Schedulers and reports call it.
  void read_lr();

  /// The values that schedulers store for a parameter group, by Python's names, such as
  /// `initial_lr`.
  using GroupValues = std::map<std::string, double>;

  /// Returns the scheduler values of the groups, which all schedulers of this optimizer share. As
  /// in Python, `state_dict` contains them. LibTorch's archives do not.
  const std::shared_ptr<std::vector<GroupValues>>& group_values() const { return group_values_; }

  /// Returns the state and the options, with the keys of Python's `state_dict()`: {"state": {index:
  /// {name: tensor}}, "param_groups": [{option: value, "params": [index]}]}. The tensors are the
  /// optimizer's own, as in Python, except for the step counts, which are copies.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Returns the "param_groups" of `state_dict`. A resumed fit compares them with the ones in its
  /// file.
  [[nodiscard]] c10::IValue options() const;

  /// Loads the state and the options from `state_dict()`, or from Python's. Tensors are copied to
  /// the types and devices of the parameters. The kernels do not change, and neither do scheduler
  /// values that the dict does not contain. Any number is accepted as a learning rate, because a
  /// schedule may have lowered it below 0.
  /// @throw c10::Error if the groups, a size, or `maximize` differ from this optimizer's, if an
  /// option is invalid, or if a key is missing. The optimizer is not changed.
  void load_state_dict(const c10::IValue& state_dict);

  /// Writes an archive that LibTorch's optimizer of the same name can read, if there is one. Called
  /// by `torch::save`.
  void save(torch::serialize::OutputArchive& archive) const final;

  /// Reads an archive, including one written by LibTorch's optimizer of the same name. Called by
  /// `torch::load`. If it throws, the optimizer is not changed.
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

  // LibTorch owns the groups and lets anyone change the list, so each step looks up what belongs to
  // a group: its rate by its first parameter, its plan by all of them.
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<GroupRates> rates_;  // null if learning rates are numbers
  size_t checked_groups_ = 0;
  std::shared_ptr<std::vector<GroupValues>> group_values_;  // may be shorter than the groups
};

}  // namespace sconce::optim
