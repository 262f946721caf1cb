#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/distributed/data_parallel.hpp"

namespace sconce::nn {

/// The prefix for error messages.
inline constexpr auto data_parallel_name = "sconce::nn::DataParallel";

/// Returns the parameters and buffers of a module and, with `recurse`, of its submodules.
std::vector<torch::Tensor> tensors_of(const torch::nn::Module& module, bool recurse = true);

/// A clone of the module on another device. Maps the module's layers and tensors to their
/// counterparts in the clone.
struct DataParallelBase::Replica {
  template <class T>
  struct Pair {
    T original;
    T copy;
  };

  torch::Device device;
  std::shared_ptr<torch::nn::Module> module = {};
  std::vector<Pair<std::shared_ptr<torch::nn::Module>>> layers = {};  // parents before children
  std::vector<Pair<torch::Tensor>> tensors = {};

  /// Returns a replica for each device except the first, which contains the module itself. Does not
  /// change the module's values or the states of the random number generators.
  /// @throw c10::Error with the name of the class if a layer cannot be cloned, or if its clone
  /// would compute with different tensors.
  static std::vector<Replica> make(const std::shared_ptr<torch::nn::Module>& module,
                                   const std::vector<torch::Device>& devices);

  /// Copies the module's training mode and values to the replica. With `with_grad`, gradients flow
  /// back to the module.
  void update(bool with_grad) const;

 private:
  void pair_up(const std::shared_ptr<torch::nn::Module>& original,
               const std::shared_ptr<torch::nn::Module>& copy);
  void pair_up_tensors(torch::nn::Module& layer,
                       const torch::OrderedDict<std::string, torch::Tensor>& originals,
                       const torch::OrderedDict<std::string, torch::Tensor>& copies);
  torch::Tensor copy_of(const torch::Tensor& original);
  void set_members();
  void check_members() const;
};

}  // namespace sconce::nn
