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

/// The sizes that may differ from run to run, and the dimensions of inputs that have them.
class DynamicSizes {
 public:
  /// @throw c10::Error, naming the dimension, if the example does not have it, if two dimensions of
  /// one size differ, or if there are more than three sizes.
  DynamicSizes(const StateDict& example, const std::vector<DynamicDim>& dims);

  const std::vector<std::string>& names() const { return names_; }

  /// Returns the smaller value of each size that is recorded. Operators treat 1 differently.
  std::vector<int64_t> smaller() const;

  /// Returns sizes at which an integer that is not a sum of products differs from one through
  /// `smaller` and one more than that.
  std::vector<int64_t> farther() const;

  /// Returns inputs with these sizes, made of the example's rows. The last row comes first, so that
  /// the values differ from the example's.
  Tensors inputs(const StateDict& example, const std::vector<int64_t>& sizes) const;

  /// Returns the shape of an input.
  std::vector<Size> shape(size_t index, const at::Tensor& input) const;

 private:
  void add(const StateDict& example, const DynamicDim& given);

  std::vector<std::string> names_ = {};
  std::vector<int64_t> of_example_ = {};
  std::map<size_t, std::map<int64_t, size_t>> dims_ = {};  // of the inputs, with the sizes' indices
};

/// @throw c10::Error unless the name is an identifier of Python and C++, as names of `what` must
/// be.
void check_name(const std::string& name, const char* what);

}  // namespace sconce::program::detail
