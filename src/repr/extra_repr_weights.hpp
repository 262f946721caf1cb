#pragma once

#include <torch/nn/modules.h>
#include <torch/version.h>

#include <string>
#include <variant>

#include "repr/extra_repr_text.hpp"
#include "sconce/nn/layer_norm.hpp"

// These overloads handle layers with weights.
namespace sconce::extra_repr {

namespace nn = torch::nn;

// Since PyTorch 2.12, Python's normalization layers print whether they use a bias.
constexpr bool norms_show_bias = TORCH_VERSION_MAJOR > 2 ||
                                 (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 12);

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
  const auto differs = [](const char* name, const torch::ExpandingArray<D>& value,
                          int64_t default_value) {
    return *value == *torch::ExpandingArray<D>(default_value) ? "" : named(name, value);
  };
  std::string padding = "padding=same";
  if (std::holds_alternative<torch::enumtype::kValid>(o.padding())) padding = "padding=valid";
  if (const auto* sizes = std::get_if<torch::ExpandingArray<D>>(&o.padding())) {
    padding = differs("padding", *sizes, 0);
  }
  return list({text(o.in_channels()), text(o.out_channels()), named("kernel_size", o.kernel_size()),
               named("stride", o.stride()), padding, differs("dilation", o.dilation(), 1),
               differs("output_padding", o.output_padding(), 0),
               unless_default(int64_t{1}, "groups", o.groups()),
               unless_default(true, "bias", m.bias.defined()),
               unless_default<std::string>("zeros", "padding_mode", word(o.padding_mode()))});
}

template <size_t D, typename Derived, typename Options>
std::string of(const nn::NormImplBase<D, Derived, Options>& m) {
  return list({text(m.options.num_features()), named("eps", m.options.eps()),
               named("momentum", m.options.momentum()), named("affine", m.options.affine()),
               norms_show_bias ? named("bias", m.bias.defined()) : "",
               named("track_running_stats", m.options.track_running_stats())});
}

template <OneOf<nn::LayerNormImpl, sconce::nn::LayerNormImpl> M>
std::string of(const M& m) {
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
               unless_default({}, "padding_idx", o.padding_idx()),
               unless_default({}, "max_norm", o.max_norm()),
               unless_default(2.0, "norm_type", o.norm_type()),
               unless_default(false, "scale_grad_by_freq", o.scale_grad_by_freq()),
               unless_default(false, "sparse", o.sparse())});
}

inline std::string of(const nn::EmbeddingBagImpl& m) {
  const auto& o = m.options;
  return list({text(o.num_embeddings()), text(o.embedding_dim()),
               unless_default({}, "max_norm", o.max_norm()),
               unless_default(2.0, "norm_type", o.norm_type()),
               unless_default(false, "scale_grad_by_freq", o.scale_grad_by_freq()),
               "mode='" + word(o.mode()) + "'",
               unless_default({}, "padding_idx", o.padding_idx())});
}

template <typename Derived>
std::string of(const nn::detail::RNNImplBase<Derived>& m) {
  const auto& o = m.options_base;
  return list({text(o.input_size()), text(o.hidden_size()),
               unless_default(int64_t{0}, "proj_size", o.proj_size()),
               unless_default(int64_t{1}, "num_layers", o.num_layers()),
               unless_default(true, "bias", o.bias()),
               unless_default(false, "batch_first", o.batch_first()),
               unless_default(0.0, "dropout", o.dropout()),
               unless_default(false, "bidirectional", o.bidirectional())});
}

template <typename Derived>
std::string of(const nn::detail::RNNCellImplBase<Derived>& m) {
  const auto& o = m.options_base;
  return list(
      {text(o.input_size()), text(o.hidden_size()), unless_default(true, "bias", o.bias())});
}
inline std::string of(const nn::RNNCellImpl& m) {
  const nn::detail::RNNCellImplBase<nn::RNNCellImpl>& base = m;
  return list({of(base), unless_default<std::string>("tanh", "nonlinearity",
                                                     word(m.options.nonlinearity()))});
}

}  // namespace sconce::extra_repr
