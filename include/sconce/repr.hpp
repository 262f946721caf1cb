#pragma once

#include <c10/util/ArrayRef.h>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>

#include "sconce/fwd.hpp"

namespace torch::nn {
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace sconce {

/// Returns the text that Python of the same LibTorch version prints for the tensor, with Python's
/// default print options: `tensor([1., 2.], device='cuda:0', grad_fn=<MulBackward0>)`. A parameter
/// prints like any other tensor, with `requires_grad=True`. Reads the elements that it shows.
/// Python: `repr(tensor)`.
/// @throw c10::Error if the tensor is undefined, sparse, quantised, nested, or of a type other than
/// bool, the integers, float16, bfloat16, float32 and float64.
std::string repr(const torch::Tensor& tensor);

/// Returns the device as `device(type='cuda', index=0)`; `Device::str` gives the short `cuda:0`.
/// Python: `repr(device)`, and `str(device)`.
std::string repr(torch::Device device);

/// Returns the type as `torch.float32`. Python: `repr(dtype)`.
std::string repr(torch::ScalarType dtype);

/// Returns the sizes as `torch.Size([2, 3])`. Python: `repr(tensor.shape)`.
std::string repr(c10::IntArrayRef sizes);

/// Returns `True` or `False`. Python: `repr(bool)`.
std::string repr(bool value);

/// Returns the shortest text that reads back as the same number: `0.1`, `1e-05`, `2.0`.
/// Python: `repr(float)`.
std::string repr(double value);

/// Returns the module with its options and, indented below it, its children.
/// A module of torch::nn prints its name of there. Where Python keeps whether one number or a tuple
/// was given, which C++ does not (`MaxPool2d`'s kernel), equal numbers print as one. Any other
/// module prints its class without namespaces and without `Impl` or, if a name other than the full
/// one of its class was given to `torch::nn::Module`'s constructor, that name as it is. A module
/// can choose both by `ReprOverride`.
/// Python: `repr(module)`.
/// @throw c10::Error if one of the modules is a ParameterList or a ParameterDict.
std::string repr(const torch::nn::Module& module);

/// Returns the text of the module that the holder holds.
/// @throw c10::Error if the holder is empty.
template <typename Contained>
std::string repr(const torch::nn::ModuleHolder<Contained>& holder) {
  return repr(static_cast<const torch::nn::Module&>(*holder));
}

/// Integers and pointers would pick the text of a size or a bool: there is none for them.
template <typename T>
requires((std::integral<T> && !std::same_as<T, bool>) || std::is_pointer_v<T>) std::string repr(T)
= delete;

/// What a module that derives from this too says about its own text; `repr` asks it first.
class ReprOverride {
 public:
  virtual ~ReprOverride() = default;

  /// Returns the name before the parenthesis, or nothing to keep the usual one.
  /// Python: `Module._get_name`.
  virtual std::optional<std::string> repr_name() const { return {}; }

  /// Returns what stands in the parentheses before any children, such as
  /// `in_features=3, out_features=1`, or nothing to keep the usual text.
  /// Python: `Module.extra_repr`.
  virtual std::optional<std::string> extra_repr() const { return {}; }
};

}  // namespace sconce
