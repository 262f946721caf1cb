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

/// Gives the tensor of a name such as "weight", or an undefined one.
using FindTensor = std::function<torch::Tensor(const std::string& name)>;

/// What every lazy layer is besides a module: a layer whose first `forward` reads from its input
/// how many features come in, then makes and initializes its tensors. Until then it is
/// uninitialized: its parameters, and BatchNorm's running statistics, are empty placeholders of
/// shape `[0]` that already are the tensors an optimizer keeps, and that take `to(device)`,
/// `to(dtype)` and `requires_grad_(false)`; the real ones have the placeholders' device and type
/// and draw the numbers that Python's lazy layer draws. Two first forwards at once, in two threads,
/// are a data race. Python: `torch.nn.modules.lazy.LazyModuleMixin`.
class LazyLayer : public ReprOverride {
 public:
  /// Whether the layer has its real tensors. BatchNorm without any tensor is never without them.
  virtual bool is_initialized() const = 0;

  /// `LazyLinear` before the first forward or load, `Linear` after it. Python: `_get_name()`.
  virtual std::string layer_name() const = 0;
  std::optional<std::string> repr_name() const final { return layer_name(); }

  /// Initializes the layer with copies of the tensors that `find` gives, draws nothing, and returns
  /// true; changes nothing and returns false if one is missing or has a shape that does not fit the
  /// layer's options. An initialized layer is left alone, and true returned. num_batches_tracked is
  /// no placeholder and stays as it is.
  virtual bool materialize_from(const FindTensor& find) = 0;
};

/// Whether the module is a lazy layer without its real tensors, or holds one at any depth.
bool is_uninitialized(const torch::nn::Module& module);

/// For whoever needs the real tensors of a whole module.
/// @throw c10::Error if `is_uninitialized(module)`: the text begins with `who`, says
/// "uninitialized" and gives the first such layer's path and name.
void check_initialized(const torch::nn::Module& module, const char* who);

/// Initializes the lazy layers in the module for which the state, with keys such as "net.0.weight",
/// has all tensors in shapes that fit, and leaves the others as they are. Python:
/// `load_state_dict` on a lazy module.
void materialize_from(torch::nn::Module& module, const StateDict& state);

/// Options of `LazyLinear`: those of `torch::nn::Linear` without in_features.
struct LazyLinearOptions {
  LazyLinearOptions(int64_t out_features) : out_features_(out_features) {}
  operator torch::nn::LinearOptions() const;  ///< with in_features 0

  TORCH_ARG(int64_t, out_features);  ///< features of an output
  TORCH_ARG(bool, bias) = true;      ///< whether to add a learned bias
};

/// Options of the lazy convolutions: those of `torch::nn::Conv1d` to `Conv3d` without in_channels.
template <size_t D>
struct LazyConvOptions {
  using padding_t = torch::nn::detail::conv_padding_t<D>;         ///< numbers, kValid or kSame
  using padding_mode_t = torch::nn::detail::conv_padding_mode_t;  ///< kZeros to kCircular

  LazyConvOptions(int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : out_channels_(out_channels), kernel_size_(kernel_size) {}
  operator torch::nn::detail::ConvNdOptions<D>() const;  ///< with in_channels 0
  /// Padding of each dimension, such as `.padding({2, 1})`.
  auto padding(std::initializer_list<int64_t> sizes) { return padding(at::IntArrayRef(sizes)); }

  TORCH_ARG(int64_t, out_channels);                         ///< channels of an output
  TORCH_ARG(torch::ExpandingArray<D>, kernel_size);         ///< a number, or one a dimension
  TORCH_ARG(torch::ExpandingArray<D>, stride) = 1;          ///< step of the kernel
  TORCH_ARG(padding_t, padding) = 0;                        ///< added at both ends
  TORCH_ARG(torch::ExpandingArray<D>, dilation) = 1;        ///< distance of the kernel's elements
  TORCH_ARG(int64_t, groups) = 1;                           ///< divides both numbers of channels
  TORCH_ARG(bool, bias) = true;                             ///< whether to add a learned bias
  TORCH_ARG(padding_mode_t, padding_mode) = torch::kZeros;  ///< what padding holds
};
using LazyConv1dOptions = LazyConvOptions<1>;  ///< options of `LazyConv1d`
using LazyConv2dOptions = LazyConvOptions<2>;  ///< options of `LazyConv2d`
using LazyConv3dOptions = LazyConvOptions<3>;  ///< options of `LazyConv3d`

/// Options of the lazy batch norms: those of `torch::nn::BatchNorm1d` without num_features.
struct LazyBatchNormOptions {
  operator torch::nn::BatchNormOptions() const;  ///< with num_features 0

  TORCH_ARG(double, eps) = 1e-5;                     ///< added to the variance
  TORCH_ARG(std::optional<double>, momentum) = 0.1;  ///< weight of a batch; none: the plain mean
  TORCH_ARG(bool, affine) = true;                    ///< whether to learn a weight and a bias
  TORCH_ARG(bool, track_running_stats) = true;       ///< whether to keep mean and variance
};
using LazyBatchNorm1dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm1d`
using LazyBatchNorm2dOptions = LazyBatchNormOptions;  ///< options of `LazyBatchNorm2d`

/// The lazy form of the layer `Base`. It is a `Base`, so `as<torch::nn::Linear>()` finds it, and
/// `weight`, `bias` and `options` are those of `Base`; the number of features in `options` is 0
/// while the layer is uninitialized. Call `forward` on the lazy type: through a `Base&` it is
/// `Base`'s own.
template <class Derived, class Base, class LazyOptions>
class LazyModule : public Base, public LazyLayer {
 public:
  /// An uninitialized layer with the options that these arguments construct; draws nothing.
  /// @throw c10::Error if an option is out of its range, such as groups that do not divide
  /// out_channels.
  template <class... Args>
  requires std::constructible_from<LazyOptions, Args...>
  explicit LazyModule(Args&&... args)
      : LazyModule(Options(LazyOptions(std::forward<Args>(args)...))) {}

  /// The real layer's forward, before which an uninitialized layer initializes itself, in any grad
  /// mode.
  /// @throw c10::Error if the input has a number of dimensions that the real layer refuses, no
  /// features, or a number of them that the groups do not divide; the layer stays uninitialized.
  torch::Tensor forward(const torch::Tensor& input);

  /// Draws the initial numbers again; of an uninitialized layer, nothing.
  void reset_parameters();

  /// A deep copy, as uninitialized or initialized as this, that keeps `requires_grad`; draws
  /// nothing.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = {}) const override;

  /// What `torch::save` calls. @throw c10::Error with "uninitialized" if the layer is so.
  void save(torch::serialize::OutputArchive& archive) const override;

  /// What `torch::load` calls; initializes the layer. As with any layer of LibTorch, the type is
  /// then the archive's. @throw c10::Error if the archive's tensors do not fit an uninitialized
  /// layer.
  void load(torch::serialize::InputArchive& archive) override;

  /// `repr`'s text while the layer is uninitialized, then what `Base` prints.
  void pretty_print(std::ostream& stream) const override;

  bool is_initialized() const override;
  std::string layer_name() const override;
  bool materialize_from(const FindTensor& find) override;

 protected:
  /// The number of features, for the accessor of that name.
  int64_t features(const char* accessor) const;

 private:
  using Options = decltype(Base::options);
  explicit LazyModule(const Options& real_options);
  void materialize(int64_t features, const FindTensor& find);
};

/// `(*, in_features)` to `(*, out_features)`. Python: `torch.nn.LazyLinear`.
class LazyLinearImpl : public LazyModule<LazyLinearImpl, torch::nn::LinearImpl, LazyLinearOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t in_features() const { return features("in_features"); }
};
TORCH_MODULE(LazyLinear);

/// `(N, C, L)` or `(C, L)`, with in_channels C. Python: `torch.nn.LazyConv1d`.
class LazyConv1dImpl : public LazyModule<LazyConv1dImpl, torch::nn::Conv1dImpl, LazyConv1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t in_channels() const { return features("in_channels"); }
};
TORCH_MODULE(LazyConv1d);

/// `(N, C, H, W)` or `(C, H, W)`, with in_channels C. Python: `torch.nn.LazyConv2d`.
class LazyConv2dImpl : public LazyModule<LazyConv2dImpl, torch::nn::Conv2dImpl, LazyConv2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t in_channels() const { return features("in_channels"); }
};
TORCH_MODULE(LazyConv2d);

/// `(N, C, D, H, W)` or `(C, D, H, W)`, with in_channels C. Python: `torch.nn.LazyConv3d`.
class LazyConv3dImpl : public LazyModule<LazyConv3dImpl, torch::nn::Conv3dImpl, LazyConv3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t in_channels() const { return features("in_channels"); }
};
TORCH_MODULE(LazyConv3d);

/// `(N, C)` or `(N, C, L)`, with num_features C. Python: `torch.nn.LazyBatchNorm1d`.
class LazyBatchNorm1dImpl
    : public LazyModule<LazyBatchNorm1dImpl, torch::nn::BatchNorm1dImpl, LazyBatchNorm1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t num_features() const { return features("num_features"); }
};
TORCH_MODULE(LazyBatchNorm1d);

/// `(N, C, H, W)`, with num_features C. Python: `torch.nn.LazyBatchNorm2d`.
class LazyBatchNorm2dImpl
    : public LazyModule<LazyBatchNorm2dImpl, torch::nn::BatchNorm2dImpl, LazyBatchNorm2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// @throw c10::Error with "uninitialized" if the layer is so.
  int64_t num_features() const { return features("num_features"); }
};
TORCH_MODULE(LazyBatchNorm2d);

}  // namespace sconce::nn
