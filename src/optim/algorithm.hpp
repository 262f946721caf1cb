#pragma once

// What distinguishes the classes of optimizers. For the sources of this folder.

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/optim/extra_options.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

/// The tensors of `step_with_amp_scaling`. Both are undefined in a normal step.
struct Amp {
  at::Tensor grad_scale = {};
  at::Tensor found_inf = {};
};

/// What a class of optimizers is.
struct Traits {
  std::string name;   ///< of the class
  Kernels fastest;    ///< the kernels after it are there too
  bool takes_sparse;  ///< whether kernels other than a given `Kernels::fused` take sparse
                      ///< gradients
  bool python_has_fused_on_gpu;  ///< whether Python's class, in all supported versions
};

/// The states of one class of optimizers, and its step. `Optimizer` has one and does what all
/// classes share. `AlgorithmOf` of optim/optimizer_of.hpp makes it from the class's table.
class Algorithm {
 public:
  using Options = torch::optim::OptimizerOptions;
  using ParamGroup = torch::optim::OptimizerParamGroup;
  using ParamState = torch::optim::OptimizerParamState;
  using Tensors = std::map<std::string, at::Tensor>;  // of a state, by Python's keys

  explicit Algorithm(Traits traits) : traits_(std::move(traits)) {}
  virtual ~Algorithm() = default;

  /// Chooses the kernels that `extra` names, or the fastest ones that take all parameters.
  /// @throw c10::Error if the class does not have the kernels that `extra` names.
  void choose_kernels(ExtraOptions extra, const std::vector<ParamGroup>& groups);

  /// Returns the fastest kernels that take all parameters.
  Kernels chosen_kernels(const std::vector<ParamGroup>& groups) const;

  /// @throw c10::Error if the kernels are fused and do not take the parameter.
  void check_parameter(const at::Tensor& parameter) const;

  /// Returns whether the kernels take a learning rate that is a tensor on a GPU, as in Python with
  /// `capturable`: the fastest ones read nothing on the host then, unless they are the loop.
  bool takes_lr_on_device() const;

  bool takes_sparse_gradients() const {
    return traits_.takes_sparse && extra_.kernels != Kernels::fused;
  }

  const Traits& traits() const { return traits_; }
  const std::string& name() const { return traits_.name; }
  const ExtraOptions& extra() const { return extra_; }
  Kernels kernels() const { return kernels_; }
  void set_kernels(Kernels kernels) { kernels_ = kernels; }

  /// @throw c10::Error if Python refuses the options.
  virtual void check(const Options& options) const = 0;

  /// Makes the states that a new optimizer has before its first step.
  virtual void make_first_states(torch::optim::Optimizer& optimizer) const = 0;
  /// Collects the group's gradients and returns whether one of them is sparse. Makes or converts
  /// states. Throws if the group cannot be stepped.
  virtual bool prepare_group(torch::optim::Optimizer& optimizer, size_t index) = 0;
  /// Steps a prepared group. A learning rate that is a tensor in `extra` is the group's.
  virtual void step_group(size_t index, const Options& options, const ExtraOptions& extra,
                          const Amp& amp) = 0;
  /// Must be called after states were replaced.
  virtual void forget_plans() = 0;

  virtual Tensors state_tensors(const ParamState& state) const = 0;
  /// Makes a state in the form of the kernels.
  virtual std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                                 const at::Tensor& parameter) const = 0;
  /// Writes or reads each option that belongs to the state.
  virtual void visit_options(Options& options, StateVisitor& state) const = 0;
  virtual void write(torch::serialize::OutputArchive& archive,
                     const torch::optim::Optimizer& optimizer) const = 0;
  virtual void read(torch::serialize::InputArchive& archive,
                    torch::optim::Optimizer& optimizer) const = 0;

 protected:
  // Returns whether the kernels can step parameter `index` of group `group`, which has a gradient,
  // with `state`, a tensor of its state. If not, the state must be converted to the parameter's
  // device, type and strides. `state` may be undefined. Throws if the gradient or the state has
  // other sizes than the parameter, or if the kernels do not accept the parameter.
  bool state_fits(const torch::optim::Optimizer& optimizer, size_t group, size_t index,
                  const at::Tensor& state) const;

  // Returns a copy of a number of a state, 0-dim and float32, on the parameter's device if the
  // parameter is stepped there without the host, otherwise on the CPU.
  at::Tensor number_for(const at::Tensor& parameter, const at::Tensor& number) const;

  // Returns a copy of the tensor `key` of a state with the parameter's device and type and the
  // strides that the kernels need, or an undefined tensor if there is none. Throws if its sizes are
  // not the parameter's.
  at::Tensor copy_for(const at::Tensor& parameter, const Tensors& tensors, const char* key) const;

 private:
  Traits traits_;
  ExtraOptions extra_ = {};
  Kernels kernels_ = Kernels::for_loop;
};

}  // namespace sconce::optim
