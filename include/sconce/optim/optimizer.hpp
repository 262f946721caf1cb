#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/optim/amp_scaling.hpp"
#include "sconce/optim/extra_options.hpp"

namespace sconce {
class StateVisitor;  // writes and reads states, in src/
}  // namespace sconce

namespace sconce::optim {

/// Drops the gradients of all parameters of any optimizer. LibTorch's own `zero_grad` detaches each
/// gradient first, which takes two operator calls. Python: `optimizer.zero_grad()`.
void zero_grad(torch::optim::Optimizer& optimizer);

/// The parameter of a state. LibTorch keeps a state under the address of its parameter, and as long
/// as this object exists, no other tensor gets that address. It does not keep the parameter's
/// memory. Not for direct use.
class StateOwner {
 public:
  StateOwner() = default;
  explicit StateOwner(const torch::Tensor& parameter) : address_(parameter.getIntrusivePtr()) {}

 private:
  using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> address_{Impl()};
};

/// Base class of `SGD`, `Adam`, `AdamW`, `Adagrad`, `RMSprop` and `NAdam`: the choice of kernels,
/// and the state in Python's form. A step skips parameters without a gradient. A parameter that
/// occurs twice in a group, as a layer that a model contains twice gives it, is stepped once. The
/// host reads nothing, except step counts on the CPU by the fused kernels of Adam and Adagrad,
/// those on a GPU for sparse gradients and Adagrad's lr_decay, and a learning rate that is a
/// tensor, unless the class's fastest kernels take it on a GPU. The options of a group are merged
/// with the optimizer's as LibTorch does it: with 2.15 an option with the default value of its type
/// gets the optimizer's value, with 2.11 it does not. `param_groups()[i].options()` sets any value.
///
/// The optimizer owns its states and holds its parameters as tensors, which share the model's. The
/// state of a parameter that is no longer in a group stays, as in Python; drop it by
/// `state().erase(p.unsafeGetTensorImpl())`. Schedulers and callbacks keep references to the
/// optimizer, so it can be neither copied nor moved: a function returns it by `return Adam(...)`,
/// or in a `std::unique_ptr`.
class Optimizer : public torch::optim::Optimizer, public AmpScaling {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Returns the kernels in use, never `Kernels::automatic`. Sparse gradients, which only SGD and
  /// Adagrad take, are stepped by the loop if the kernels are foreach or were chosen automatically.
  Kernels kernels() const { return kernels_; }

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
  /// tensor on a GPU and the class's fastest kernels, which are fused or, in RMSprop and NAdam,
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

  /// Loads the state and the options of a dict from `state_dict()`, or from Python. Tensors are
  /// copied to the parameters' types and devices. The kernels do not change, nor do values of
  /// schedulers that the dict does not have. A learning rate may be any number, since a schedule
  /// may have lowered it below 0.
  /// @throw c10::Error if the groups, a size or `maximize` differ from this optimizer's, an option
  /// is invalid, or a key is missing; the optimizer has not changed.
  void load_state_dict(const c10::IValue& state_dict);

 protected:
  using Options = torch::optim::OptimizerOptions;
  using ParamGroup = torch::optim::OptimizerParamGroup;
  using ParamState = torch::optim::OptimizerParamState;
  using Tensors = std::map<std::string, torch::Tensor>;  // by Python's keys

  // The tensors of `step_with_amp_scaling`. Both are undefined in a normal step.
  struct Amp {
    torch::Tensor grad_scale = {};
    torch::Tensor found_inf = {};
  };

  // The kernels after `fastest` are there too. The fastest ones read nothing on the host if the
  // learning rate is a tensor on a GPU, unless they are the loop.
  Optimizer(std::string name, const std::vector<ParamGroup>& groups,
            std::unique_ptr<Options> defaults, ExtraOptions extra,
            Kernels fastest = Kernels::fused);

  // Checks the options and the groups. The constructors call it: this class cannot read options.
  void check_construction();

  // Checks the groups that have not been checked yet.
  void check_new_groups();

  // Runs `read`, which fills `state_` from an archive of LibTorch, and converts the state to the
  // form of the kernels. If it throws, state and options are restored.
  void replace_state(const std::function<void()>& read);

  // Makes the groups' options equal to learning rates that are tensors, for a save. The host reads.
  void sync_lr() const;

  // Returns whether the kernels can step a parameter with `state`, a tensor of its state. If not,
  // the state must be converted to the parameter's device, type and strides. The parameter has a
  // gradient; `state` may be undefined. Throws if the gradient or the state has other sizes than
  // the parameter, or if the kernels do not accept the parameter.
  bool state_fits(size_t group, size_t index, const torch::Tensor& state) const;

  // Returns the state of a parameter with a gradient. If there is none, `make(parameter)` makes it;
  // if it no longer fits, `make_state` converts it. Every state has the tensor `like`, which is
  // like the parameter. For the sources of optim/, which define it.
  template <class State, class Make>
  State& fitting_state(size_t group, size_t index, torch::Tensor State::* like, const Make& make);

  // Returns whether the kernels take a learning rate that is a tensor on a GPU, as in Python with
  // `capturable`.
  bool takes_lr_on_device() const;

  // Returns whether the parameter is stepped without the host, so that the numbers of its state,
  // such as the step count, must be on its device.
  bool steps_on_device(const torch::Tensor& parameter) const;

  // Returns a copy of a number of a state, 0-dim and float32, on the parameter's device if the
  // parameter is stepped there, otherwise on the CPU.
  torch::Tensor state_number(const torch::Tensor& parameter, const torch::Tensor& number) const;

  // Returns a copy of a tensor of the parameter's state, with the parameter's device and type and
  // the strides that the kernels need.
  torch::Tensor like_parameter(const torch::Tensor& parameter, const torch::Tensor& tensor) const;

  // Returns such a copy of the tensor `key`, or an undefined tensor if there is none. Throws if its
  // sizes are not the parameter's.
  torch::Tensor copy_for(const torch::Tensor& parameter, const Tensors& tensors,
                         const char* key) const;

  const std::string& name() const { return name_; }
  const ExtraOptions& extra() const { return extra_; }
  // Returns the options of a step of the group. A learning rate that is a tensor is the group's.
  ExtraOptions extra(size_t group) const;

  virtual void check(const Options& options) const = 0;
  virtual bool takes_sparse_gradients() const = 0;
  virtual bool python_has_fused() const { return true; }  // in all supported versions
  // Collects the group's gradients and returns whether one of them is sparse. Throws if the group
  // cannot be stepped.
  virtual bool prepare_group(size_t index) = 0;
  virtual void step_group(size_t index, const Amp& amp) = 0;
  virtual void state_replaced() = 0;
  virtual Tensors state_tensors(const ParamState& state) const = 0;
  virtual std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                                 const torch::Tensor& parameter) const = 0;
  // Calls the visitor with each option that belongs to the state, and its key.
  virtual void visit_options(Options& options, StateVisitor& state) const = 0;

 private:
  // The entries of a state dict for a group.
  struct GroupState {
    std::unique_ptr<Options> options;
    torch::Tensor lr = {};  // undefined if learning rates are numbers
    GroupValues values = {};
    std::vector<int64_t> params = {};
  };

  struct GroupRate {
    const void* first = nullptr;  // address of the first parameter of the group with this rate
    StateOwner owner = {};        // keeps that address from other tensors
    torch::Tensor tensor = {};
    double written = std::numeric_limits<double>::quiet_NaN();  // equal in tensor and options
    int64_t version = 0;                                        // of the tensor then
  };
  void drop_repeats(ParamGroup& group);
  void choose_again();
  void renew_states();
  void check_fused(const torch::Tensor& parameter) const;
  bool has_sparse_gradient() const;
  void step_all(const Amp& amp);
  void step_now(const Amp& amp);
  void match_rates();
  GroupRate new_rate(ParamGroup& group) const;
  void read_rate(size_t group);
  void rewrite_lr();
  GroupState state_of_group(size_t index) const;
  void check_reached(const Options& options) const;
  void visit_group(GroupState& group, StateVisitor& state) const;

  std::string name_;
  ExtraOptions extra_;
  Kernels fastest_;
  Kernels kernels_;
  size_t checked_groups_ = 0;
  std::vector<GroupRate> rates_ = {};  // if lr is a tensor: of the groups, then of removed ones
  std::shared_ptr<std::vector<GroupValues>> group_values_;  // may be shorter than the groups
};

}  // namespace sconce::optim
