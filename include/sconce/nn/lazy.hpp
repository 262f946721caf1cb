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

/// Returns the tensor named `name`, such as "weight", or an undefined tensor if it is missing.
using FindTensor = std::function<torch::Tensor(const std::string& name)>;

/// Base class for the lazy layers. The first call to `forward` infers the number of input features
/// from the input, then creates and initializes the layer's tensors. Until the first call, the
/// layer is uninitialized: its parameters (and a BatchNorm's running statistics) are empty
/// placeholders of shape `[0]`. The placeholders later become the real tensors, so you can pass
/// them to an optimizer immediately. The placeholders support `to(device)`, `to(dtype)`, and
/// `requires_grad_(false)`. The real tensors keep the placeholders' device and type and are
/// initialized with the same random numbers as in Python. Calling `forward` for the first time from
/// two threads concurrently is a data race. Python: `torch.nn.modules.lazy.LazyModuleMixin`.
class LazyLayer : public ReprOverride {
 public:
  /// Returns whether the layer's tensors exist. Returns true for a BatchNorm with no tensors.
  virtual bool is_initialized() const = 0;

  /// Returns the class name, such as `LazyLinear` before initialization and `Linear` afterward.
  /// Python: `_get_name()`.
  virtual std::string layer_name() const = 0;
  std::optional<std::string> repr_name() const final { return layer_name(); }

  /// Initializes the layer with copies of the tensors that `find` returns, and returns true. Does
  /// not draw random numbers. If a tensor is missing or its shape does not match the layer's
  /// options, returns false and changes nothing. If the layer is already initialized, returns true
  /// and changes nothing. Because `num_batches_tracked` is not a placeholder, it is left unchanged.
  virtual bool materialize_from(const FindTensor& find) = 0;
};

/// Returns whether `module` is an uninitialized lazy layer or contains one at any depth.
bool has_uninitialized_params(const torch::nn::Module& module);

/// Checks that `module` contains no uninitialized lazy layers. Functions that use a module's
/// tensors call this function first. For internal use.
/// @throw c10::Error if `has_uninitialized_params(module)` is true.
/// The message begins with `who` and contains "uninitialized" and the path and class of the first
/// uninitialized layer.
void check_initialized(const torch::nn::Module& module, const char* who);

/// Initializes the lazy layers in `module` from a state dict with keys such as "net.0.weight". If
/// any of a layer's tensors is missing or has an invalid shape, that layer is left unchanged.
/// Python: `load_state_dict` on a lazy module.
void materialize_from(torch::nn::Module& module, const StateDict& state);

/// Options for `LazyLinear`: `torch::nn::LinearOptions` without `in_features`.
struct LazyLinearOptions {
  /// Constructs options for a layer with a bias.
  LazyLinearOptions(int64_t out_features) : out_features_(out_features) {}
  operator torch::nn::LinearOptions() const;  ///< converts with `in_features` set to 0

  TORCH_ARG(int64_t, out_features);  ///< number of output features
  TORCH_ARG(bool, bias) = true;      ///< whether to learn an additive bias
};

/// Options for the lazy convolutions: the options for `torch::nn::Conv1d` through `Conv3d`, without
/// `in_channels`.
template <size_t D>
struct LazyConvOptions {
  using padding_t = torch::nn::detail::conv_padding_t<D>;         ///< numbers, kValid, or kSame
  using padding_mode_t = torch::nn::detail::conv_padding_mode_t;  ///< kZeros to kCircular

  /// Sets `out_channels` and `kernel_size` and leaves all other options at their defaults.
  LazyConvOptions(int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : out_channels_(out_channels), kernel_size_(kernel_size) {}
  operator torch::nn::detail::ConvNdOptions<D>() const;  ///< converts with `in_channels` set to 0
  /// Sets per-dimension padding, as in `.padding({2, 1})`.
  auto padding(std::initializer_list<int64_t> sizes) { return padding(at::IntArrayRef(sizes)); }

  TORCH_ARG(int64_t, out_channels);                  ///< number of output channels
  TORCH_ARG(torch::ExpandingArray<D>, kernel_size);  ///< one number, or one per dimension
  TORCH_ARG(torch::ExpandingArray<D>, stride) = 1;   ///< stride of the kernel
  TORCH_ARG(padding_t, padding) = 0;  ///< padding at both ends (`3`, `{2, 1}`), kValid, or kSame
  TORCH_ARG(torch::ExpandingArray<D>, dilation) = 1;        ///< spacing between kernel elements
  TORCH_ARG(int64_t, groups) = 1;                           ///< must divide both channel counts
  TORCH_ARG(bool, bias) = true;                             ///< whether to learn an additive bias
  TORCH_ARG(padding_mode_t, padding_mode) = torch::kZeros;  ///< how padding is filled
};
using LazyConv1dOptions = LazyConvOptions<1>;  ///< options of `LazyConv1d`
using LazyConv2dOptions = LazyConvOptions<2>;  ///< options of `LazyConv2d`
using LazyConv3dOptions = LazyConvOptions<3>;  ///< options of `LazyConv3d`

/// Options for the lazy batch norms: `BatchNormOptions` without `num_features`.
struct LazyBatchNormOptions {
  operator torch::nn::BatchNormOptions() const;  ///< converts with `num_features` set to 0

  TORCH_ARG(double, eps) = 1e-5;                     ///< value added to the variance
  TORCH_ARG(std::optional<double>, momentum) = 0.1;  ///< weight of a new batch; plain mean if empty
  TORCH_ARG(bool, affine) = true;                    ///< whether to learn a weight and a bias
  TORCH_ARG(bool, track_running_stats) = true;       ///< whether to keep running statistics
};
using LazyBatchNorm1dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm1d`
using LazyBatchNorm2dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm2d`
using LazyBatchNorm3dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm3d`

/// The lazy version of `Base`. Because this class derives from `Base`, `as<torch::nn::Linear>()`
/// works, and the members `weight`, `bias`, and `options` are available. While the layer is
/// uninitialized, the number of input features in `options` is 0. Call `forward` on the lazy type,
/// because a call through a `Base&` runs `Base::forward`, which does not initialize the layer.
template <class Derived, class Base, class LazyOptions>
class LazyModule : public Base, public LazyLayer {
 public:
  /// Constructs an uninitialized layer. `args` are passed to the options constructor. Does not draw
  /// random numbers.
  /// @throw c10::Error if an option is invalid, such as `groups` not dividing `out_channels`.
  template <class... Args>
    requires std::constructible_from<LazyOptions, Args...>
  explicit LazyModule(Args&&... args)
      : LazyModule(Options(LazyOptions(std::forward<Args>(args)...))) {}

  /// Applies the layer, initializing the layer first if necessary. The first call can initialize
  /// the layer in any grad mode.
  /// @throw c10::Error if the input has an unsupported number of dimensions or no features, or if
  /// `groups` does not divide the feature count. After the error, the layer is still uninitialized.
  torch::Tensor forward(const torch::Tensor& input);

  /// Reinitializes the parameters. Does nothing if the layer is uninitialized.
  void reset_parameters();

  /// Returns a deep copy with the same `requires_grad` settings. A copy of an uninitialized layer
  /// is also uninitialized. Does not draw random numbers.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = {}) const override;

  /// Saves the layer. Called by `torch::save`.
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  void save(torch::serialize::OutputArchive& archive) const override;

  /// Loads and initializes the layer. Called by `torch::load`. As with all LibTorch layers, the
  /// loaded tensors have the types stored in the archive.
  /// @throw c10::Error if the layer is uninitialized and does not match the tensors in the archive.
  void load(torch::serialize::InputArchive& archive) override;

  /// Prints the text of `sconce::repr` until the layer is initialized, then the text of `Base`.
  void pretty_print(std::ostream& stream) const override;

  bool is_initialized() const override;
  std::string layer_name() const override;
  bool materialize_from(const FindTensor& find) override;

 protected:
  /// Returns the number of input features. `accessor` is the name of the calling function.
  int64_t features(const char* accessor) const;
  /// Initializes an uninitialized layer for inputs like `input`.
  void initialize_for(const torch::Tensor& input);

 private:
  using Options = decltype(Base::options);
  explicit LazyModule(const Options& real_options);
  void materialize(int64_t features, const FindTensor& find);
};

/// A linear layer that maps `(*, in_features)` to `(*, out_features)` and infers `in_features`.
/// Python: `torch.nn.LazyLinear`.
class LazyLinearImpl : public LazyModule<LazyLinearImpl, torch::nn::LinearImpl, LazyLinearOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_features() const { return features("in_features"); }
};
/// Module holder for `LazyLinearImpl`. Python: `torch.nn.LazyLinear`.
TORCH_MODULE(LazyLinear);

/// A 1d convolution for inputs of shape `(N, C, L)` or `(C, L)`, with `in_channels` inferred from
/// the first input. Python: `torch.nn.LazyConv1d`.
class LazyConv1dImpl : public LazyModule<LazyConv1dImpl, torch::nn::Conv1dImpl, LazyConv1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder for `LazyConv1dImpl`. Python: `torch.nn.LazyConv1d`.
TORCH_MODULE(LazyConv1d);

/// A 2d convolution for inputs of shape `(N, C, H, W)` or `(C, H, W)`, with `in_channels` inferred
/// from the first input. Python: `torch.nn.LazyConv2d`.
class LazyConv2dImpl : public LazyModule<LazyConv2dImpl, torch::nn::Conv2dImpl, LazyConv2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder for `LazyConv2dImpl`. Python: `torch.nn.LazyConv2d`.
TORCH_MODULE(LazyConv2d);

/// A 3d convolution for inputs of shape `(N, C, D, H, W)` or `(C, D, H, W)`, with `in_channels`
/// inferred from the first input. Python: `torch.nn.LazyConv3d`.
class LazyConv3dImpl : public LazyModule<LazyConv3dImpl, torch::nn::Conv3dImpl, LazyConv3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }
};
/// Module holder for `LazyConv3dImpl`. Python: `torch.nn.LazyConv3d`.
TORCH_MODULE(LazyConv3d);

/// A 1d batch norm for inputs of shape `(N, C)` or `(N, C, L)`, with `num_features` inferred from
/// the first input. Python: `torch.nn.LazyBatchNorm1d`.
class LazyBatchNorm1dImpl
    : public LazyModule<LazyBatchNorm1dImpl, torch::nn::BatchNorm1dImpl, LazyBatchNorm1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder for `LazyBatchNorm1dImpl`. Python: `torch.nn.LazyBatchNorm1d`.
TORCH_MODULE(LazyBatchNorm1d);

/// A 2d batch norm for inputs of shape `(N, C, H, W)`, with `num_features` inferred from the first
/// input. Python: `torch.nn.LazyBatchNorm2d`.
class LazyBatchNorm2dImpl
    : public LazyModule<LazyBatchNorm2dImpl, torch::nn::BatchNorm2dImpl, LazyBatchNorm2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder for `LazyBatchNorm2dImpl`. Python: `torch.nn.LazyBatchNorm2d`.
TORCH_MODULE(LazyBatchNorm2d);

/// A 3d batch norm for inputs of shape `(N, C, D, H, W)`, with `num_features` inferred from the
/// first input. Python: `torch.nn.LazyBatchNorm3d`.
class LazyBatchNorm3dImpl
    : public LazyModule<LazyBatchNorm3dImpl, torch::nn::BatchNorm3dImpl, LazyBatchNorm3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t num_features() const { return features("num_features"); }
};
/// Module holder for `LazyBatchNorm3dImpl`. Python: `torch.nn.LazyBatchNorm3d`.
TORCH_MODULE(LazyBatchNorm3d);

}  // namespace sconce::nn
