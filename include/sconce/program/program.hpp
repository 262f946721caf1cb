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
class PreparedProgram;  // defined in src/
}  // namespace detail

/// A program's inputs or outputs, in the program's order.
using Tensors = std::vector<torch::Tensor>;

/// A tensor that a program accepts or returns.
struct TensorSpec {
  std::string name = {};                  ///< name, such as "x"
  torch::ScalarType dtype = c10::kFloat;  ///< type of the elements
  std::vector<int64_t> shape = {};        ///< sizes, with -1 for a dynamic size
};

/// Options for `Program::load`.
struct LoadOptions {
  /// Device on which to run the program. Defaults to the device type on which the program was
  /// recorded. `cuda` refers to the current GPU.
  std::optional<torch::Device> device = {};
};

/// A tensor function that `record` saved to a file. A program contains a sequence of operators,
/// along with the weights. A program runs without Python and without the network's class. A program
/// computes the recorded function's evaluation-mode result, without gradients. Copies share the
/// weights.
///
///     const auto program = sconce::program::Program::load("net.safetensors");
///     const auto logits = program.run({x})[0];
///
/// Python: `torch.export.load(path).module()`.
class Program {
 public:
  /// Loads a program without running it.
  /// @throw c10::Error, with the file and the position in the message, if:
  /// - the file is not a safetensors file that contains a program of version 1, or it is damaged;
  /// - a call uses an operator or argument that this version of LibTorch does not support, or an
  ///   operator that is not allowed in programs;
  /// - the device is not available.
  static Program load(const std::filesystem::path& path, LoadOptions options = {});

  /// Runs the program. `inputs` must be on the program's device, in the same order as `inputs()`.
  /// Autocast and gradients are disabled. Any number of threads may call this function
  /// concurrently.
  /// @throw c10::Error, with the input in the message, if the number of inputs, or the type,
  /// device, or shape of an input, does not match the program, or if an operator throws.
  Tensors run(const Tensors& inputs) const;

  /// Returns descriptions of the tensors that the program accepts, in the order that `run` expects.
  const std::vector<TensorSpec>& inputs() const;

  /// Returns descriptions of the tensors that the program returns, in the order in which `run`
  /// returns them.
  const std::vector<TensorSpec>& outputs() const;

  /// Returns the metadata that was recorded with the program.
  const std::map<std::string, std::string>& metadata() const;

  /// Returns the device on which the program runs.
  torch::Device device() const;

 private:
  explicit Program(std::shared_ptr<const detail::PreparedProgram> prepared);

  std::shared_ptr<const detail::PreparedProgram> prepared_;
};

}  // namespace sconce::program
