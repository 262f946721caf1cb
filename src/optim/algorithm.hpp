#pragma once

// Interface for the operations that differ between optimizer classes. This header is internal to
// this folder.

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

/// The properties of an optimizer class.
struct Traits {
  std::string name;      ///< name of the class
  Kernels fastest;       ///< slower kernels are also available
  bool supports_sparse;  ///< whether kernels other than an explicit `Kernels::fused` support sparse
                         ///< gradients
  bool python_has_fused_on_gpu;  ///< whether all supported Python versions have fused GPU kernels
};

/// The state and the step function for an optimizer class. `Optimizer` owns an instance and
/// implements everything that the classes share. `AlgorithmOf` in optim/algorithm_of.hpp creates an
/// instance from the table of the class.
class Algorithm {
 public:
  using Options = torch::optim::OptimizerOptions;
  using ParamGroup = torch::optim::OptimizerParamGroup;
  using ParamState = torch::optim::OptimizerParamState;
  using Tensors = std::map<std::string, at::Tensor>;  // tensors in a state, with Python's keys

  explicit Algorithm(Traits traits) : traits_(std::move(traits)) {}
  virtual ~Algorithm() = default;

  /// Chooses the kernels that `extra` requests, or the fastest kernels that support all parameters.
  /// @throw c10::Error if the class does not support the kernels that `extra` requests.
  void choose_kernels(ExtraOptions extra, const std::vector<ParamGroup>& groups);

  /// Returns the fastest kernels that support all parameters.
  Kernels chosen_kernels(const std::vector<ParamGroup>& groups) const;

  /// @throw c10::Error if the kernels are fused and the parameter is not supported.
  void check_parameter(const at::Tensor& parameter) const;

  /// Returns whether the kernels accept a learning rate that is a tensor on a GPU. As in Python
  /// with `capturable`, the fastest kernels then do not read any values on the host, unless they
  /// are the for-loop implementation.
  bool supports_lr_on_device() const;

  bool supports_sparse_gradients() const {
    return traits_.supports_sparse && extra_.kernels != Kernels::fused;
  }

  const Traits& traits() const { return traits_; }
  const std::string& name() const { return traits_.name; }
  const ExtraOptions& extra() const { return extra_; }
  Kernels kernels() const { return kernels_; }
  void set_kernels(Kernels kernels) { kernels_ = kernels; }

  /// @throw c10::Error if Python rejects the options.
  virtual void check(const Options& options) const = 0;

  /// Creates the states that exist before the first step of a new optimizer.
  virtual void make_first_states(torch::optim::Optimizer& optimizer) const = 0;
  /// Collects the group's gradients, and returns whether any of them is sparse. Creates or converts
  /// states. Throws if the group cannot be updated.
  virtual bool prepare_group(torch::optim::Optimizer& optimizer, size_t index) = 0;
  /// Updates the parameters in a prepared group. If the learning rate in `extra` is a tensor, it
  /// belongs to the group.
  virtual void step_group(size_t index, const Options& options, const ExtraOptions& extra,
                          const Amp& amp) = 0;
  /// Must be called after states have been replaced.
  virtual void forget_plans() = 0;

  virtual Tensors state_tensors(const ParamState& state) const = 0;
  /// Creates a state in the form used by the kernels.
  virtual std::unique_ptr<ParamState> make_state(const Tensors& tensors,
                                                 const at::Tensor& parameter) const = 0;
  /// Writes or reads each option that is part of the state.
  virtual void visit_options(Options& options, StateVisitor& state) const = 0;
  virtual void write(torch::serialize::OutputArchive& archive,
                     const torch::optim::Optimizer& optimizer) const = 0;
  virtual void read(torch::serialize::InputArchive& archive,
                    torch::optim::Optimizer& optimizer) const = 0;

 protected:
  // Returns whether the kernels can update the parameter at `index` in `group` with `state`, which
  // is a tensor from the parameter's state. The parameter must have a gradient. If this function
  // returns false, the state must be converted to the parameter's device, type, and strides.
  // `state` may be undefined. Throws if the sizes of the gradient or the state differ from the
  // parameter's sizes, or if the kernels do not support the parameter.
  bool state_fits(const torch::optim::Optimizer& optimizer, size_t group, size_t index,
                  const at::Tensor& state) const;

  // Copies a number from a state to a 0-dim float32 tensor and returns the tensor. The copy is on
  // the parameter's device if the kernels update the parameter without reading the number on the
  // host. Otherwise, the copy is on the CPU.
  at::Tensor number_for(const at::Tensor& parameter, const at::Tensor& number) const;

  // Copies a state's `key` tensor to the parameter's device and type, with the strides that the
  // kernels require. Returns an undefined tensor if the state does not contain the key. Throws if
  // the tensor's sizes differ from the parameter's sizes.
  at::Tensor copy_for(const at::Tensor& parameter, const Tensors& tensors, const char* key) const;

 private:
  Traits traits_;
  ExtraOptions extra_ = {};
  Kernels kernels_ = Kernels::for_loop;
};

}  // namespace sconce::optim
