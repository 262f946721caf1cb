#pragma once

#include <torch/nn/modules.h>
#include <torch/version.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <variant>

#include "sconce/repr.hpp"

// Python's `extra_repr` for each module of torch::nn that has one.
namespace sconce::extra_repr {

namespace nn = torch::nn;

// Since LibTorch 2.12, Python's normalization layers show whether they have a bias.
constexpr bool norms_show_bias = TORCH_VERSION_MAJOR > 2 ||
                                 (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 12);

inline std::string text(bool value) {
  return repr(value);
}
inline std::string text(double value) {
  return repr(value);
}
inline std::string text(int64_t value) {
  return std::to_string(value);
}
inline std::string text(const std::string& value) {
  return value;
}

template <typename T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "None";
}

// A Python tuple: (1, 2), and (1,).
template <typename T>
std::string text(c10::ArrayRef<T> values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "(" + list + (values.size() == 1 ? ",)" : ")");
}

template <size_t D, typename T>
std::string text(const torch::ExpandingArray<D, T>& values) {
  return text(c10::ArrayRef<T>(*values));
}

// Python keeps a single number if one was given. C++ does not know, so equal numbers print as one.
template <typename T>
std::string number(c10::ArrayRef<T> values) {
  const bool equal = std::equal(values.begin() + 1, values.end(), values.begin());
  return equal ? text(values.front()) : text(values);
}

template <size_t D, typename T>
std::string number(const torch::ExpandingArray<D, T>& values) {
  return number(c10::ArrayRef<T>(*values));
}

// LibTorch's enumerators are Python's strings: torch::kReflect is 'reflect'.
template <typename... Enums>
std::string word(const std::variant<Enums...>& value) {
  std::string name = torch::enumtype::get_enum_name(value).substr(1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name == "nearestexact" ? "nearest-exact" : name;
}

template <typename T>
std::string named(const char* name, const T& value) {
  return std::string(name) + "=" + text(value);
}

template <typename T>
std::string unless(const T& usual, const char* name, const T& value) {
  return value == usual ? "" : named(name, value);
}

// Joins the parts, skipping empty ones.
inline std::string list(std::initializer_list<std::string> parts) {
  std::string all;
  for (const auto& part : parts) {
    if (!part.empty()) all += (all.empty() ? "" : ", ") + part;
  }
  return all;
}

inline std::string inplace(bool value) {
  return unless(false, "inplace", value);
}

template <typename M, typename... Modules>
concept OneOf = (std::same_as<M, Modules> || ...);

// The layers with weights.

inline std::string of(const nn::LinearImpl& m) {
  return list({named("in_features", m.options.in_features()),
               named("out_features", m.options.out_features()), named("bias", m.bias.defined())});
}

inline std::string of(const nn::BilinearImpl& m) {
  return list({named("in1_features", m.options.in1_features()),
               named("in2_features", m.options.in2_features()),
               named("out_features", m.options.out_features()), named("bias", m.bias.defined())});
}

template <size_t D, typename Derived>
std::string of(const nn::ConvNdImpl<D, Derived>& m) {
  const auto& o = m.options;
  const auto differs = [](const char* name, const torch::ExpandingArray<D>& value, int64_t usual) {
    return *value == *torch::ExpandingArray<D>(usual) ? "" : named(name, value);
  };
  std::string padding = "padding=same";
  if (std::holds_alternative<torch::enumtype::kValid>(o.padding())) padding = "padding=valid";
  if (const auto* sizes = std::get_if<torch::ExpandingArray<D>>(&o.padding())) {
    padding = differs("padding", *sizes, 0);
  }
  return list({text(o.in_channels()), text(o.out_channels()), named("kernel_size", o.kernel_size()),
               named("stride", o.stride()), padding, differs("dilation", o.dilation(), 1),
               differs("output_padding", o.output_padding(), 0),
               unless(int64_t{1}, "groups", o.groups()), unless(true, "bias", m.bias.defined()),
               unless<std::string>("zeros", "padding_mode", word(o.padding_mode()))});
}

template <size_t D, typename Derived, typename Options>
std::string of(const nn::NormImplBase<D, Derived, Options>& m) {
  return list({text(m.options.num_features()), named("eps", m.options.eps()),
               named("momentum", m.options.momentum()), named("affine", m.options.affine()),
               norms_show_bias ? named("bias", m.bias.defined()) : "",
               named("track_running_stats", m.options.track_running_stats())});
}

inline std::string of(const nn::LayerNormImpl& m) {
  return list({text(c10::IntArrayRef(m.options.normalized_shape())), named("eps", m.options.eps()),
               named("elementwise_affine", m.options.elementwise_affine()),
               norms_show_bias ? named("bias", m.bias.defined()) : ""});
}

inline std::string of(const nn::GroupNormImpl& m) {
  return list({text(m.options.num_groups()), text(m.options.num_channels()),
               named("eps", m.options.eps()), named("affine", m.options.affine()),
               norms_show_bias ? named("bias", m.bias.defined()) : ""});
}

template <OneOf<nn::LocalResponseNormImpl, nn::CrossMapLRN2dImpl> M>
std::string of(const M& m) {
  return list({text(m.options.size()), named("alpha", m.options.alpha()),
               named("beta", m.options.beta()), named("k", m.options.k())});
}

inline std::string of(const nn::EmbeddingImpl& m) {
  const auto& o = m.options;
  return list({text(o.num_embeddings()), text(o.embedding_dim()),
               unless({}, "padding_idx", o.padding_idx()), unless({}, "max_norm", o.max_norm()),
               unless(2.0, "norm_type", o.norm_type()),
               unless(false, "scale_grad_by_freq", o.scale_grad_by_freq()),
               unless(false, "sparse", o.sparse())});
}

inline std::string of(const nn::EmbeddingBagImpl& m) {
  const auto& o = m.options;
  return list({text(o.num_embeddings()), text(o.embedding_dim()),
               unless({}, "max_norm", o.max_norm()), unless(2.0, "norm_type", o.norm_type()),
               unless(false, "scale_grad_by_freq", o.scale_grad_by_freq()),
               "mode='" + word(o.mode()) + "'", unless({}, "padding_idx", o.padding_idx())});
}

template <typename Derived>
std::string of(const nn::detail::RNNImplBase<Derived>& m) {
  const auto& o = m.options_base;
  return list({text(o.input_size()), text(o.hidden_size()),
               unless(int64_t{0}, "proj_size", o.proj_size()),
               unless(int64_t{1}, "num_layers", o.num_layers()), unless(true, "bias", o.bias()),
               unless(false, "batch_first", o.batch_first()), unless(0.0, "dropout", o.dropout()),
               unless(false, "bidirectional", o.bidirectional())});
}

template <typename Derived>
std::string of(const nn::detail::RNNCellImplBase<Derived>& m) {
  const auto& o = m.options_base;
  return list({text(o.input_size()), text(o.hidden_size()), unless(true, "bias", o.bias())});
}
inline std::string of(const nn::RNNCellImpl& m) {
  const nn::detail::RNNCellImplBase<nn::RNNCellImpl>& base = m;
  return list(
      {of(base), unless<std::string>("tanh", "nonlinearity", word(m.options.nonlinearity()))});
}

// Pooling, padding and shapes.

template <size_t D, typename Derived>
std::string of(const nn::MaxPoolImpl<D, Derived>& m) {
  const auto& o = m.options;
  return list({named("kernel_size", number(o.kernel_size())), named("stride", number(o.stride())),
               named("padding", number(o.padding())), named("dilation", number(o.dilation())),
               named("ceil_mode", o.ceil_mode())});
}

template <size_t D, typename Derived>
std::string of(const nn::AvgPoolImpl<D, Derived>& m) {
  // Python turns a number into a tuple only for one-dimensional layers.
  const auto sizes = [](const auto& value) { return D == 1 ? text(value) : number(value); };
  const auto& o = m.options;
  return list({named("kernel_size", sizes(o.kernel_size())), named("stride", sizes(o.stride())),
               named("padding", sizes(o.padding()))});
}

template <size_t D, typename Derived>
std::string of(const nn::MaxUnpoolImpl<D, Derived>& m) {
  return list({named("kernel_size", m.options.kernel_size()), named("stride", m.options.stride()),
               named("padding", m.options.padding())});
}

template <size_t D, typename Derived>
std::string of(const nn::LPPoolImpl<D, Derived>& m) {
  const auto& o = m.options;
  return list({named("norm_type", o.norm_type()), named("kernel_size", number(o.kernel_size())),
               named("stride", *o.stride() == *o.kernel_size() ? "None" : number(o.stride())),
               named("ceil_mode", o.ceil_mode())});
}

template <size_t D, typename Size, typename Derived>
std::string of(const nn::AdaptiveAvgPoolImpl<D, Size, Derived>& m) {
  return named("output_size", number(m.options.output_size()));
}
template <size_t D, typename Size, typename Derived>
std::string of(const nn::AdaptiveMaxPoolImpl<D, Size, Derived>& m) {
  return named("output_size", number(m.options.output_size()));
}

template <OneOf<nn::ReflectionPad1dImpl, nn::ReflectionPad2dImpl, nn::ReflectionPad3dImpl,
                nn::ReplicationPad1dImpl, nn::ReplicationPad2dImpl, nn::ReplicationPad3dImpl,
                nn::ZeroPad1dImpl, nn::ZeroPad2dImpl, nn::ZeroPad3dImpl>
              M>
std::string of(const M& m) {
  return text(m.options.padding());
}
template <size_t D, typename Derived>
std::string of(const nn::ConstantPadImpl<D, Derived>& m) {
  return list({named("padding", m.options.padding()), named("value", m.options.value())});
}

inline std::string of(const nn::FlattenImpl& m) {
  return list({named("start_dim", m.options.start_dim()), named("end_dim", m.options.end_dim())});
}
inline std::string of(const nn::UnflattenImpl& m) {
  return list({named("dim", m.options.dim()),
               named("unflattened_size", c10::IntArrayRef(m.options.sizes()))});
}

template <OneOf<nn::FoldImpl, nn::UnfoldImpl> M>
std::string of(const M& m) {
  const auto& o = m.options;
  std::string output_size;
  if constexpr (requires { o.output_size(); })
    output_size = named("output_size", number(o.output_size()));
  return list({output_size, named("kernel_size", number(o.kernel_size())),
               named("dilation", number(o.dilation())), named("padding", number(o.padding())),
               named("stride", number(o.stride()))});
}

inline std::string of(const nn::PixelShuffleImpl& m) {
  return named("upscale_factor", m.options.upscale_factor());
}
inline std::string of(const nn::PixelUnshuffleImpl& m) {
  return named("downscale_factor", m.options.downscale_factor());
}

inline std::string of(const nn::UpsampleImpl& m) {
  const auto& [size, factor] = std::tie(m.options.size(), m.options.scale_factor());
  return list({factor ? named("scale_factor", number(c10::ArrayRef<double>(*factor)))
                      : named("size", size ? number(c10::IntArrayRef(*size)) : "None"),
               "mode='" + word(m.options.mode()) + "'"});
}

// Activations and dropout.

template <typename Derived>
std::string of(const nn::detail::_DropoutNd<Derived>& m) {
  return list({named("p", m.options.p()), named("inplace", m.options.inplace())});
}

template <OneOf<nn::ReLUImpl, nn::ReLU6Impl, nn::SELUImpl> M>
std::string of(const M& m) {
  return inplace(m.options.inplace());
}
template <OneOf<nn::ELUImpl, nn::CELUImpl> M>
std::string of(const M& m) {
  return list({named("alpha", m.options.alpha()), inplace(m.options.inplace())});
}
template <OneOf<nn::SoftmaxImpl, nn::LogSoftmaxImpl, nn::SoftminImpl, nn::GLUImpl> M>
std::string of(const M& m) {
  return named("dim", m.options.dim());
}
template <OneOf<nn::HardshrinkImpl, nn::SoftshrinkImpl> M>
std::string of(const M& m) {
  return text(m.options.lambda());
}
inline std::string of(const nn::LeakyReLUImpl& m) {
  return list({named("negative_slope", m.options.negative_slope()), inplace(m.options.inplace())});
}
inline std::string of(const nn::RReLUImpl& m) {
  return list({named("lower", m.options.lower()), named("upper", m.options.upper()),
               inplace(m.options.inplace())});
}
inline std::string of(const nn::HardtanhImpl& m) {
  return list({named("min_val", m.options.min_val()), named("max_val", m.options.max_val()),
               inplace(m.options.inplace())});
}
inline std::string of(const nn::ThresholdImpl& m) {
  return list({named("threshold", m.options.threshold()), named("value", m.options.value()),
               inplace(m.options.inplace())});
}
inline std::string of(const nn::SoftplusImpl& m) {
  return list({named("beta", m.options.beta()), named("threshold", m.options.threshold())});
}
inline std::string of(const nn::GELUImpl& m) {
  return "approximate='" + m.options.approximate() + "'";
}
inline std::string of(const nn::PReLUImpl& m) {
  return named("num_parameters", m.options.num_parameters());
}

template <typename... Modules>
std::string of_first(const nn::Module& module) {
  std::string extra;
  const auto tried = [&]<typename M>(const M* m) {
    if (m != nullptr) extra = of(*m);
    return m != nullptr;
  };
  (void)(tried(dynamic_cast<const Modules*>(&module)) || ...);
  return extra;
}

// Returns the text that Python shows for the module besides its children; nothing for all other
// modules.
inline std::string of_any(const nn::Module& module) {
  return of_first<
      nn::LinearImpl, nn::BilinearImpl, nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl,
      nn::ConvTranspose1dImpl, nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl,
      nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl,
      nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl, nn::LayerNormImpl, nn::GroupNormImpl,
      nn::LocalResponseNormImpl, nn::CrossMapLRN2dImpl, nn::EmbeddingImpl, nn::EmbeddingBagImpl,
      nn::RNNImpl, nn::LSTMImpl, nn::GRUImpl, nn::RNNCellImpl, nn::LSTMCellImpl, nn::GRUCellImpl,
      nn::MaxPool1dImpl, nn::MaxPool2dImpl, nn::MaxPool3dImpl, nn::AvgPool1dImpl, nn::AvgPool2dImpl,
      nn::AvgPool3dImpl, nn::MaxUnpool1dImpl, nn::MaxUnpool2dImpl, nn::MaxUnpool3dImpl,
      nn::LPPool1dImpl, nn::LPPool2dImpl, nn::LPPool3dImpl, nn::AdaptiveAvgPool1dImpl,
      nn::AdaptiveAvgPool2dImpl, nn::AdaptiveAvgPool3dImpl, nn::AdaptiveMaxPool1dImpl,
      nn::AdaptiveMaxPool2dImpl, nn::AdaptiveMaxPool3dImpl, nn::ReflectionPad1dImpl,
      nn::ReflectionPad2dImpl, nn::ReflectionPad3dImpl, nn::ReplicationPad1dImpl,
      nn::ReplicationPad2dImpl, nn::ReplicationPad3dImpl, nn::ZeroPad1dImpl, nn::ZeroPad2dImpl,
      nn::ZeroPad3dImpl, nn::ConstantPad1dImpl, nn::ConstantPad2dImpl, nn::ConstantPad3dImpl,
      nn::FlattenImpl, nn::UnflattenImpl, nn::FoldImpl, nn::UnfoldImpl, nn::PixelShuffleImpl,
      nn::PixelUnshuffleImpl, nn::UpsampleImpl, nn::DropoutImpl, nn::Dropout2dImpl,
      nn::Dropout3dImpl, nn::AlphaDropoutImpl, nn::FeatureAlphaDropoutImpl, nn::ReLUImpl,
      nn::ReLU6Impl, nn::SELUImpl, nn::ELUImpl, nn::CELUImpl, nn::SoftmaxImpl, nn::LogSoftmaxImpl,
      nn::SoftminImpl, nn::GLUImpl, nn::HardshrinkImpl, nn::SoftshrinkImpl, nn::LeakyReLUImpl,
      nn::RReLUImpl, nn::HardtanhImpl, nn::ThresholdImpl, nn::SoftplusImpl, nn::GELUImpl,
      nn::PReLUImpl>(module);
}

}  // namespace sconce::extra_repr
