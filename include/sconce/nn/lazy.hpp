#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/ordered_dict.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "sconce/repr.hpp"

namespace sconce::nn {

/// Function that returns the tensor with a name such as "weight", or an undefined one.
using FindTensor = std::function<torch::Tensor(const std::string& name)>;

/// Base class of the lazy layers. The first `forward` of a lazy layer reads the number of input
/// features from its input, then makes and initializes the tensors of the layer. Until then the
/// layer is uninitialized: its parameters, and the running statistics of a BatchNorm, are empty
/// placeholders of shape `[0]`. An optimizer can already hold the placeholders, since they later
/// become the real tensors. They accept `to(device)`, `to(dtype)` and `requires_grad_(false)`. The
/// real tensors keep the device and type of the placeholders and get the same random numbers as
/// Python's lazy layer. Two first forwards at once in two threads are a data race. Python:
/// `torch.nn.modules.lazy.LazyModuleMixin`.
class LazyLayer : public ReprOverride {
 public:
  /// Returns whether the layer has its real tensors. True for a BatchNorm without any tensors.
  virtual bool is_initialized() const = 0;

  /// Returns the class name: `LazyLinear` before the first forward or load, `Linear` after it.
  /// Python: `_get_name()`.
  virtual std::string layer_name() const = 0;
  std::optional<std::string> repr_name() const final { return layer_name(); }

  /// Initializes the layer with copies of the tensors that `find` returns, without drawing random
  /// numbers, and returns true. If a tensor is missing or its shape does not fit the options of the
  /// layer, changes nothing and returns false. An initialized layer stays unchanged and returns
  /// true. num_batches_tracked is not a placeholder and stays as it is.
  virtual bool materialize_from(const FindTensor& find) = 0;
};

/// Returns whether the module is an uninitialized lazy layer or contains one at any depth.
bool has_uninitialized_params(const torch::nn::Module& module);

/// Checks that a module contains no uninitialized lazy layer, before its tensors are used. Not for
/// direct use.
/// @throw c10::Error if `has_uninitialized_params(module)`. The text begins with `who`, contains
/// "uninitialized", and names the path and class of the first such layer.
void check_initialized(const torch::nn::Module& module, const char* who);

/// Initializes the lazy layers in the module from a state with keys such as "net.0.weight". Layers
/// for which the state lacks a tensor, or has one of the wrong shape, stay as they are. Python:
/// `load_state_dict` on a lazy module.
void materialize_from(torch::nn::Module& module, const StateDict& state);

/// Options of `LazyLinear`: those of `torch::nn::Linear` without in_features.
struct LazyLinearOptions {
  /// Makes options with a bias.
  LazyLinearOptions(int64_t out_features) : out_features_(out_features) {}
  operator torch::nn::LinearOptions() const;  ///< with in_features 0

  TORCH_ARG(int64_t, out_features);  ///< number of output features
  TORCH_ARG(bool, bias) = true;      ///< whether to add a learned bias
};

/// Options of the lazy convolutions: those of `torch::nn::Conv1d` to `Conv3d` without in_channels.
template <size_t D>
struct LazyConvOptions {
  using padding_t = torch::nn::detail::conv_padding_t<D>;         ///< numbers, kValid or kSame
  using padding_mode_t = torch::nn::detail::conv_padding_mode_t;  ///< kZeros to kCircular

  /// Makes options with these two values and defaults for the others.
  LazyConvOptions(int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : out_channels_(out_channels), kernel_size_(kernel_size) {}
  operator torch::nn::detail::ConvNdOptions<D>() const;  ///< with in_channels 0
  /// Padding of each dimension, such as `.padding({2, 1})`.
  auto padding(std::initializer_list<int64_t> sizes) { return padding(at::IntArrayRef(sizes)); }

  TORCH_ARG(int64_t, out_channels);                  ///< number of output channels
  TORCH_ARG(torch::ExpandingArray<D>, kernel_size);  ///< one number, or one per dimension
  TORCH_ARG(torch::ExpandingArray<D>, stride) = 1;   ///< stride of the kernel
  TORCH_ARG(padding_t, padding) = 0;  ///< size at both ends, a list like `{2, 1}`, kValid or kSame
  TORCH_ARG(torch::ExpandingArray<D>, dilation) = 1;        ///< spacing of the kernel elements
  TORCH_ARG(int64_t, groups) = 1;                           ///< must divide both channel numbers
  TORCH_ARG(bool, bias) = true;                             ///< whether to add a learned bias
  TORCH_ARG(padding_mode_t, padding_mode) = torch::kZeros;  ///< values of the padding
};
using LazyConv1dOptions = LazyConvOptions<1>;  ///< options of `LazyConv1d`
using LazyConv2dOptions = LazyConvOptions<2>;  ///< options of `LazyConv2d`
using LazyConv3dOptions = LazyConvOptions<3>;  ///< options of `LazyConv3d`

/// Options of the lazy batch norms: those of `torch::nn::BatchNorm1d` without num_features.
struct LazyBatchNormOptions {
  operator torch::nn::BatchNormOptions() const;  ///< with num_features 0

  TORCH_ARG(double, eps) = 1e-5;                     ///< number added to the variance
  TORCH_ARG(std::optional<double>, momentum) = 0.1;  ///< weight of a new batch; none: plain mean
  TORCH_ARG(bool, affine) = true;                    ///< whether to learn a weight and a bias
  TORCH_ARG(bool, track_running_stats) = true;       ///< whether to keep running statistics
};
using LazyBatchNorm1dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm1d`
using LazyBatchNorm2dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm2d`
using LazyBatchNorm3dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm3d`

/// Lazy form of the layer `Base`. It derives from `Base`, so `as<torch::nn::Linear>()` finds it,
/// and it has the members `weight`, `bias` and `options` of `Base`. The number of input features in
/// `options` is 0 while the layer is uninitialized. Call `forward` on the lazy type: called through
/// a `Base&`, it is that of `Base` and does not initialize the layer.
template <class Derived, class Base, class LazyOptions>
class LazyModule : public Base, public LazyLayer {
 public:
  /// Makes an uninitialized layer with options constructed from these arguments. Draws no random
  /// numbers.
  /// @throw c10::Error if an option is out of range, such as groups that do not divide
  /// out_channels.
  template <class... Args>
    requires std::constructible_from<LazyOptions, Args...>
  explicit LazyModule(Args&&... args)
      : LazyModule(Options(LazyOptions(std::forward<Args>(args)...))) {}

  /// Runs the forward of the real layer. An uninitialized layer initializes itself first, in any
  /// grad mode.
  /// @throw c10::Error if the input has a number of dimensions that the real layer refuses, no
  /// features, or a number of features that the groups do not divide. The layer then stays
  /// uninitialized.
  torch::Tensor forward(const torch::Tensor& input);

  /// Draws the initial values again. Does nothing if the layer is uninitialized.
  void reset_parameters();

  /// Returns a deep copy with the same `requires_grad`, which is uninitialized if this layer is.
  /// Draws no random numbers.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = {}) const override;

  /// Saves the layer; `torch::save` calls it.
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  void save(torch::serialize::OutputArchive& archive) const override;

  /// Loads the layer and initializes it; `torch::load` calls it. As with any layer of LibTorch, the
  /// tensors then have the types of the archive.
  /// @throw c10::Error if the layer is uninitialized and the archive's tensors do not fit it.
  void load(torch::serialize::InputArchive& archive) override;

  /// Prints the text of `repr` while the layer is uninitialized, then that of `Base`.
  void pretty_print(std::ostream& stream) const override;

  bool is_initialized() const override;
  std::string layer_name() const override;
  bool materialize_from(const FindTensor& find) override;

 protected:
  /// Returns the number of input features, for the accessor of that name.
  int64_t features(const char* accessor) const;
  /// Initializes the layer, if it is uninitialized, for an input like this one.
  void initialize_for(const torch::Tensor& input);

 private:
  using Options = decltype(Base::options);
  explicit LazyModule(const Options& real_options);
  void materialize(int64_t features, const FindTensor& find);
};

/// Maps `(*, in_features)` to `(*, out_features)`. Python: `torch.nn.LazyLinear`.
class LazyLinearImpl : public LazyModule<LazyLinearImpl, torch::nn::LinearImpl, LazyLinearOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t in_features() const { return features("in_features"); }
};
/// Module holder of `LazyLinearImpl`. Python: `torch.nn.LazyLinear`.
TORCH_MODULE(LazyLinear);

/// Takes `(N, C, L)` or `(C, L)` and reads in_channels from C. Python: `torch.nn.LazyConv1d`.
class LazyConv1dImpl : public LazyModule<LazyConv1dImpl, torch::nn::Conv1dImpl, LazyConv1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder of `LazyConv1dImpl`. Python: `torch.nn.LazyConv1d`.
TORCH_MODULE(LazyConv1d);

/// Takes `(N, C, H, W)` or `(C, H, W)` and reads in_channels from C. Python: `torch.nn.LazyConv2d`.
class LazyConv2dImpl : public LazyModule<LazyConv2dImpl, torch::nn::Conv2dImpl, LazyConv2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder of `LazyConv2dImpl`. Python: `torch.nn.LazyConv2d`.
TORCH_MODULE(LazyConv2d);

/// Takes `(N, C, D, H, W)` or `(C, D, H, W)` and reads in_channels from C.
/// Python: `torch.nn.LazyConv3d`.
class LazyConv3dImpl : public LazyModule<LazyConv3dImpl, torch::nn::Conv3dImpl, LazyConv3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder of `LazyConv3dImpl`. Python: `torch.nn.LazyConv3d`.
TORCH_MODULE(LazyConv3d);

/// Takes `(N, C)` or `(N, C, L)` and reads num_features from C. Python: `torch.nn.LazyBatchNorm1d`.
class LazyBatchNorm1dImpl
    : public LazyModule<LazyBatchNorm1dImpl, torch::nn::BatchNorm1dImpl, LazyBatchNorm1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder of `LazyBatchNorm1dImpl`. Python: `torch.nn.LazyBatchNorm1d`.
TORCH_MODULE(LazyBatchNorm1d);

/// Takes `(N, C, H, W)` and reads num_features from C. Python: `torch.nn.LazyBatchNorm2d`.
class LazyBatchNorm2dImpl
    : public LazyModule<LazyBatchNorm2dImpl, torch::nn::BatchNorm2dImpl, LazyBatchNorm2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder of `LazyBatchNorm2dImpl`. Python: `torch.nn.LazyBatchNorm2d`.
TORCH_MODULE(LazyBatchNorm2d);

/// Takes `(N, C, D, H, W)` and reads num_features from C. Python: `torch.nn.LazyBatchNorm3d`.
class LazyBatchNorm3dImpl
    : public LazyModule<LazyBatchNorm3dImpl, torch::nn::BatchNorm3dImpl, LazyBatchNorm3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" in the text if the layer is uninitialized.
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder of `LazyBatchNorm3dImpl`. Python: `torch.nn.LazyBatchNorm3d`.
TORCH_MODULE(LazyBatchNorm3d);

}  // namespace sconce::nn
