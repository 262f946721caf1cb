#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/distributed/data_parallel.hpp"

namespace sconce::nn {

/// Begins the errors.
inline constexpr auto data_parallel_name = "sconce::nn::DataParallel";

/// Returns the parameters and buffers of a module, or of one layer alone.
std::vector<torch::Tensor> tensors_of(const torch::nn::Module& module, bool recurse = true);

/// A clone of the module on another device, with pairs that map layers and tensors of the module to
/// those of the clone.
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

  /// Returns a replica for each device except the first, where the module is. The module's values
  /// and the state of the random generators stay as they are.
  /// @throw c10::Error naming a class that cannot be cloned, or whose clone would compute with
  /// other tensors.
  static std::vector<Replica> make(const std::shared_ptr<torch::nn::Module>& module,
                                   const std::vector<torch::Device>& devices);

  /// Copies the mode and the values of the module. `with_grad` lets gradients flow back to it.
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
