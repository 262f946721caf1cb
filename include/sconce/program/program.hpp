#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::program {

namespace detail {
class PreparedProgram;  // in src/
}  // namespace detail

/// The inputs or the outputs of a program, in its order.
using Tensors = std::vector<torch::Tensor>;

/// A tensor that a program accepts or returns.
struct TensorSpec {
  std::string name = {};                  ///< such as "x"
  torch::ScalarType dtype = c10::kFloat;  ///< its type
  std::vector<int64_t> shape = {};        ///< -1 for a dynamic size
};

/// Options of `Program::load`.
struct LoadOptions {
  /// Device that the program runs on. By default it is the kind of device that the program was
  /// recorded on; `cuda` is the current GPU.
  std::optional<torch::Device> device = {};
};

/// A function of tensors that `record` wrote to a file: its operators, in their order, and its
/// weights. It runs without Python and without the class of the network, and computes what the
/// function computed in evaluation mode, without gradients. Copies share the weights.
///
///     const auto program = sconce::program::Program::load("net.safetensors");
///     const auto logits = program.run({x})[0];
///
/// Python: `torch.export.load(path).module()`.
class Program {
 public:
  /// Reads a program. Nothing is run.
  /// @throw c10::Error, naming the file and the place, if:
  /// - the file is not a safetensors file with a program of version 1, or it is damaged;
  /// - a call has an operator or an argument that this LibTorch does not have, or an operator that
  ///   programs must not contain;
  /// - the device is not available.
  static Program load(const std::filesystem::path& path, LoadOptions options = {});

  /// Runs the program. Inputs are in the order of `inputs()`, and on its device. Autocast and
  /// gradients do not apply. Any number of threads may call it at once.
  /// @throw c10::Error, naming the input, if their number, a type, a device, or a shape differs
  /// from what the program accepts, or if an operator throws.
  Tensors run(const Tensors& inputs) const;

  /// Returns what the program accepts, in the order of `run`'s argument.
  const std::vector<TensorSpec>& inputs() const;

  /// Returns what the program returns, in the order of `run`'s result.
  const std::vector<TensorSpec>& outputs() const;

  /// Returns the texts that were recorded with it.
  const std::map<std::string, std::string>& metadata() const;

  /// Returns the device that the program runs on.
  torch::Device device() const;

 private:
  explicit Program(std::shared_ptr<const detail::PreparedProgram> prepared);

  std::shared_ptr<const detail::PreparedProgram> prepared_;
};

}  // namespace sconce::program
