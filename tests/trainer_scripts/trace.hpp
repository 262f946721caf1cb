#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace trainer_scripts {

/// What happens in a script, line by line, as the oracle in Python writes it too.
class Trace {
 public:
  /// With `values` each digest is followed by the numbers that it is of.
  explicit Trace(bool values) : values_(values) {}

  /// Adds a line, indented by the depth of the events that run.
  void line(const std::string& text);
  /// Adds a line with a digest of the tensors' bytes.
  void tensors(const std::string& name, const std::vector<at::Tensor>& tensors);
  /// Returns all lines since the last call.
  std::string take();

  int depth = 0;  ///< number of events that run

 private:
  bool values_;
  std::string text_ = {};
};

/// Returns the number with 17 digits, which tell it apart from any other.
std::string number(double value);

/// Returns the numbers with blanks between.
std::string numbers(const at::Tensor& tensor);

}  // namespace trainer_scripts
