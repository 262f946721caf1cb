#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/optim/amp_scaling.hpp"

namespace sconce {
class StateVisitor;  // writes and reads states, in src/
}  // namespace sconce

namespace sconce::optim {

/// Which kernels an optimizer steps with. Python: the arguments `fused` and `foreach`.
enum class Kernels {
  automatic,  ///< fused where all parameters allow it, else foreach, else the loop
  fused,      ///< one kernel does the whole step: `fused=True`
  foreach,    ///< each operation runs over a list of tensors: `foreach=True`
  for_loop    ///< each operation runs on each tensor: `foreach=False`, Python's choice on the CPU
};

/// What LibTorch's option types have no place for; it holds for the whole optimizer.
struct ExtraOptions {
  Kernels kernels = Kernels::automatic;
  bool maximize = false;  ///< maximize the objective instead of minimizing it

  /// One element, in the place of every group's lr. Change it, or the groups' options as schedulers
  /// do, not both: the next step writes into it what is new in the options.
  std::optional<torch::Tensor> lr = {};
};

/// What `SGD`, `Adam` and `AdamW` share: the choice of kernels and the state in Python's shape.
/// Parameters that have no gradient are passed over, and one that a group names twice, as C++'s
/// `parameters()` does with a layer that occurs twice, counts once. A step reads nothing on the
/// host, with two exceptions: the fused kernels of Adam read each step count that lies on the CPU,
/// and a learning rate that is a tensor is read, except where fused kernels take it on a GPU.
/// A group's options are merged with the optimizer's as the LibTorch in use does it for its own:
/// 2.15 lets an option that has the default of its type take the optimizer's value, 2.11 does not.
/// `param_groups()[i].options()` sets it whatever it is.
class Optimizer : public torch::optim::Optimizer, public AmpScaling {
 public:
  /// The kernels in use: never `Kernels::automatic`. Sparse gradients, which only SGD takes, go
  /// through the loop if these are foreach or were chosen automatically.
  Kernels kernels() const { return kernels_; }

  /// Makes one step and returns what `closure`, called with gradients enabled, returned: the loss.
  /// The state of a parameter that has moved, to other strides, another type or another device,
  /// moves with it.
  /// @throw c10::Error, before anything is stepped, if a gradient is sparse and the kernels take
  /// none, if a gradient or a parameter's state has not the parameter's sizes (to drop that state
  /// is `state().erase(p.unsafeGetTensorImpl())`), if fused kernels are in use and a parameter is
  /// no longer one that they take, or if a parameter group that was added since has options or
  /// parameters that construction would have refused.
  torch::Tensor step(LossClosure closure = nullptr) final;

  bool step_supports_amp_scaling() const final;
  void step_with_amp_scaling(const torch::Tensor& grad_scale, const torch::Tensor& found_inf) final;

  /// Whether a CUDA graph of a step makes the same step again, with the learning rate of that time:
  /// fused kernels, parameters on GPUs, and a learning rate that is a tensor on one. Of the groups'
  /// other options the graph keeps the values. Python: the argument `capturable`.
  bool is_capturable() const;

  /// Writes into a learning rate that is a tensor what is new in the groups' options. Each step
  /// does it, and so does each of a scheduler; who sets the options alone calls it before a graph
  /// of the step is replayed. Nothing is read on the host.
  void write_lr();

  /// What schedulers keep of a parameter group, by Python's names, such as `initial_lr`.
  using GroupValues = std::map<std::string, double>;

  /// The values of the groups, which this optimizer's schedulers share. They are in `state_dict`,
  /// as in Python; an archive, which is LibTorch's, has no place for them.
  const std::shared_ptr<std::vector<GroupValues>>& group_values() const { return group_values_; }

  /// Returns {"state": {index: {name: tensor}}, "param_groups": [{option: value, "params":
  /// [index]}]} with the keys of Python's `state_dict()`. The tensors are the optimizer's own, as
  /// in Python, but for the step counts, which are copies.
  [[nodiscard]] c10::IValue state_dict() const;

  /// Takes over state and options of a dict in the shape of `state_dict()`, from here or Python.
  /// Tensors are copied, to the parameters' types and devices. The kernels stay as they are, and so
  /// do values of schedulers that are not in the dict. A learning rate may be any number, as a
  /// schedule may have come to one below 0.
  /// @throw c10::Error if the groups, a size or `maximize` differ from this optimizer's, an option
  /// is wrong, or a key is missing; the optimizer is then as it was.
  void load_state_dict(const c10::IValue& state_dict);

 protected:
  using Options = torch::optim::OptimizerOptions;
  using ParamGroup = torch::optim::OptimizerParamGroup;
  using ParamState = torch::optim::OptimizerParamState;
  using Tensors = std::map<std::string, torch::Tensor>;  // by Python's keys

  // The tensors of `step_with_amp_scaling`, both undefined in a step without.
  struct Amp {
    torch::Tensor grad_scale = {};
    torch::Tensor found_inf = {};
  };

  Optimizer(std::string name, const std::vector<ParamGroup>& groups,
            std::unique_ptr<Options> defaults, ExtraOptions extra);

  // Checks the groups that have not been checked yet.
  void check_new_groups();

  // Runs `read`, which fills `state_` from an archive of LibTorch's, and brings what it read into
  // the form that the kernels take. Where it throws, state and options are as they were.
  void replace_state(const std::function<void()>& read);

  // Where the learning rate is a tensor, brings it and the groups' options to one value, as whoever
  // saves them has to: an archive of LibTorch's takes the options only. The host reads the tensor.
  void sync_lr() const;

  // Whether the kernels can step a parameter that has a gradient with `state`, a tensor of its
  // state that may be undefined, or want it brought to the parameter's device, type and strides
  // first. Throws if the gradient or the state has other sizes, or the kernels do not take the
  // parameter.
  bool state_fits(size_t group, size_t index, const torch::Tensor& state) const;

  // A copy of a tensor of the parameter's state, with its device, its type and the strides that the
  // kernels want.
  torch::Tensor like_parameter(const torch::Tensor& parameter, const torch::Tensor& tensor) const;

  // The same of the tensor `key`, or an undefined one where there is none. Throws if its sizes are
  // not the parameter's.
  torch::Tensor copy_for(const torch::Tensor& parameter, const Tensors& tensors,
                         const char* key) const;

  const std::string& name() const { return name_; }
  const ExtraOptions& extra() const { return extra_; }

  virtual void check(const Options& options) const = 0;
  virtual bool takes_sparse_gradients() const = 0;
  // Takes up the group's gradients, or throws what a step of it would; returns whether one of them
  // is sparse.
  virtual bool prepare_group(size_t index) = 0;
  virtual void step_group(size_t index, const Amp& amp) = 0;
  virtual void state_replaced() = 0;
  virtual Tensors state_tensors(const ParamState& state) const = 0;
  virtual std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                                 const torch::Tensor& parameter) const = 0;
  // Shows the visitor each option that belongs to the state, with its key.
  virtual void visit_options(Options& options, StateVisitor& state) const = 0;

 private:
  // What a state dict says of a group.
  struct GroupState {
    std::unique_ptr<Options> options;
    GroupValues values = {};
    std::vector<int64_t> params = {};
  };

  void drop_repeats(ParamGroup& group);
  void choose_again();
  void renew_states();
  void check_fused(const torch::Tensor& parameter) const;
  bool has_sparse_gradient() const;
  void step_all(const Amp& amp);
  void rewrite_lr();
  GroupState state_of_group(size_t index) const;
  void check_loaded(Options& options) const;
  void visit_group(GroupState& group, StateVisitor& state) const;

  std::string name_;
  ExtraOptions extra_;
  Kernels kernels_;
  size_t checked_groups_ = 0;
  std::vector<double> written_lrs_ = {};  // of the groups, where the lr is a tensor
  std::shared_ptr<std::vector<GroupValues>> group_values_;  // may be shorter than the groups
};

}  // namespace sconce::optim
