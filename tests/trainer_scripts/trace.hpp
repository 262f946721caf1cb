#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace trainer_scripts {

/// Records the events of a script, one per line, in the same format as the Python oracle.
class Trace {
 public:
  /// With `values`, each digest is followed by the numbers it was computed from.
  explicit Trace(bool values) : values_(values) {}

  /// Adds a line, indented according to the depth of the running events.
  void line(const std::string& text);
  /// Adds a line with a digest of the tensors' bytes.
  void tensors(const std::string& name, const std::vector<at::Tensor>& tensors);
  /// Returns all lines added since the last call.
  std::string take();

  int depth = 0;  ///< number of running events

 private:
  bool values_;
  std::string text_ = {};
};

/// Returns the number with 17 digits, which is enough to identify it uniquely.
std::string number(double value);

/// Returns the numbers, separated by spaces.
std::string numbers(const at::Tensor& tensor);

}  // namespace trainer_scripts
