#pragma once

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/size.hpp"
#include "sconce/program/record.hpp"

namespace sconce::program::detail {

/// The sizes that may differ between runs, and the dimensions of the inputs that use them.
class DynamicSizes {
 public:
  /// @throw c10::Error with the dimension if the example does not have that dimension, or if two
  /// dimensions that share a size differ. Also throws if there are more than three sizes.
  DynamicSizes(const StateDict& example, const std::vector<DynamicDim>& dims);

  const std::vector<std::string>& names() const { return names_; }

  /// Returns the smaller recorded value of each size. Each value is at least 2, because operators
  /// treat 1 differently.
  std::vector<int64_t> smaller() const;

  /// Returns sizes for a check. At these sizes, an integer that is not a sum of products differs
  /// from the sum of products that was fitted through `smaller` and `smaller` plus one.
  std::vector<int64_t> farther() const;

  /// Returns inputs with the given sizes, built from the rows of the example. The last row comes
  /// first, so that the values differ from the example's values.
  Tensors inputs(const StateDict& example, const std::vector<int64_t>& sizes) const;

  /// Returns the shape of an input.
  std::vector<Size> shape(size_t index, const at::Tensor& input) const;

 private:
  void add(const StateDict& example, const DynamicDim& given);

  std::vector<std::string> names_ = {};
  std::vector<int64_t> example_sizes_ = {};
  std::map<size_t, std::map<int64_t, size_t>> dims_ = {};  // per input: dimension to size index
};

/// @throw c10::Error unless the name is a valid identifier in both Python and C++. `what` describes
/// the named object.
void check_name(const std::string& name, const char* what);

}  // namespace sconce::program::detail
