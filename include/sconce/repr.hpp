#pragma once

#include <c10/util/ArrayRef.h>

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "sconce/fwd.hpp"

namespace torch::nn {
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace sconce {

/// Returns the text that Python prints for the same tensor, with the same LibTorch version and
/// default print options: `tensor([1., 2.], device='cuda:0', grad_fn=<MulBackward0>)`. A parameter
/// is printed like any other tensor, with `requires_grad=True`. The function reads only the
/// elements that it prints. Supported types are bool, integer types, float16, bfloat16, float32,
/// and float64.
/// Python: `repr(tensor)`.
/// @throw c10::Error if the tensor is undefined, sparse, quantized, nested, or of any other type.
std::string repr(const torch::Tensor& tensor);

/// Returns the device in the form `device(type='cuda', index=0)`. For the short form `cuda:0`, use
/// `Device::str`.
/// Python: `repr(device)`, and `str(device)` for the short form.
std::string repr(torch::Device device);

/// Returns the type in the form `torch.float32`.
/// Python: `repr(dtype)`.
std::string repr(torch::ScalarType dtype);

/// Returns the sizes in the form `torch.Size([2, 3])`.
/// Python: `repr(tensor.shape)`.
std::string repr(c10::IntArrayRef sizes);

/// Returns `True` or `False`.
/// Python: `repr(bool)`.
std::string repr(bool value);

/// Returns the shortest text that represents the same number: `0.1`, `1e-05`, `2.0`.
/// Python: `repr(float)`.
std::string repr(double value);

/// Returns a description of the module with its options, followed by its indented children. Modules
/// from `torch::nn` are printed with their `torch::nn` names. Any other module is printed with its
/// class name, without namespaces and without `Impl`. If a module's constructor passed a name other
/// than the full class name to `torch::nn::Module`, that name is printed unchanged. A module can
/// override both the name and the options with `ReprOverride`. Unlike Python, C++ does not remember
/// whether an option was specified as a number or as a tuple (such as the kernel size of
/// `MaxPool2d`), so a tuple of equal numbers is printed as a single number.
/// Python: `repr(module)`.
/// @throw c10::Error if the module is, or contains, a ParameterList or a ParameterDict.
std::string repr(const torch::nn::Module& module);

/// Returns the printed form of the module in `holder`.
/// @throw c10::Error if the module holder is empty.
template <typename Contained>
std::string repr(const torch::nn::ModuleHolder<Contained>& holder) {
  return repr(static_cast<const torch::nn::Module&>(*holder));
}

/// Deleted, because integers and pointers would be converted to sizes or to bool and printed
/// incorrectly.
template <typename T>
  requires((std::integral<T> && !std::same_as<T, bool>) || std::is_pointer_v<T>)
std::string repr(T) = delete;

/// Returns the values in brackets: `[device(type='cuda', index=0), device(type='cpu')]`. Vectors of
/// integers are printed as sizes instead.
/// Python: `repr(list)`.
template <typename T>
  requires(!std::integral<T>)
std::string repr(const std::vector<T>& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + repr(value);
  return "[" + text + "]";
}

/// Returns the values in parentheses: `(device(type='cpu'), 0.5)`.
/// Python: `repr(tuple)`.
template <typename First, typename... Rest>
std::string repr(const std::tuple<First, Rest...>& values) {
  return std::apply(
      [](const First& first, const Rest&... rest) {
        std::string text = "(" + repr(first);
        ((text += ", " + repr(rest)), ...);
        return text + (sizeof...(rest) == 0 ? ",)" : ")");
      },
      values);
}

/// Base class for modules that customize their printed form. `repr` calls the functions of this
/// class first.
class ReprOverride {
 public:
  virtual ~ReprOverride() = default;

  /// Returns the name to print before the opening parenthesis, or `std::nullopt` for the default
  /// name.
  /// Python: `Module._get_name`.
  virtual std::optional<std::string> repr_name() const { return {}; }

  /// Returns the text to print in the parentheses before any children, such as
  /// `in_features=3, out_features=1`, or `std::nullopt` for the default text.
  /// Python: `Module.extra_repr`.
  virtual std::optional<std::string> extra_repr() const { return {}; }
};

}  // namespace sconce
