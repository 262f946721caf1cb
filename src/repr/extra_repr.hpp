#pragma once

#include <torch/nn/modules.h>

#include <string>

#include "repr/extra_repr_shapes.hpp"
#include "repr/extra_repr_weights.hpp"

// Implements Python's `extra_repr` for every torch::nn module whose Python class defines it.
namespace sconce::extra_repr {

namespace nn = torch::nn;

// These overloads handle activations and dropout.

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
std::string first_match(const nn::Module& module) {
  std::string extra;
  const auto tried = [&]<typename M>(const M* m) {
    if (m != nullptr) extra = of(*m);
    return m != nullptr;
  };
  (void)(tried(dynamic_cast<const Modules*>(&module)) || ...);
  return extra;
}

// Returns the text that Python prints for the module in addition to its children, or std::nullopt
// for other modules.
inline std::string for_module(const nn::Module& module) {
  return first_match<
      nn::LinearImpl, nn::BilinearImpl, nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl,
      nn::ConvTranspose1dImpl, nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl,
      nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl,
      nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl, nn::LayerNormImpl, sconce::nn::LayerNormImpl,
      nn::GroupNormImpl, nn::LocalResponseNormImpl, nn::CrossMapLRN2dImpl, nn::EmbeddingImpl,
      nn::EmbeddingBagImpl, nn::RNNImpl, nn::LSTMImpl, nn::GRUImpl, nn::RNNCellImpl,
      nn::LSTMCellImpl, nn::GRUCellImpl, nn::MaxPool1dImpl, nn::MaxPool2dImpl, nn::MaxPool3dImpl,
      nn::AvgPool1dImpl, nn::AvgPool2dImpl, nn::AvgPool3dImpl, nn::MaxUnpool1dImpl,
      nn::MaxUnpool2dImpl, nn::MaxUnpool3dImpl, nn::LPPool1dImpl, nn::LPPool2dImpl,
      nn::LPPool3dImpl, nn::AdaptiveAvgPool1dImpl, nn::AdaptiveAvgPool2dImpl,
      nn::AdaptiveAvgPool3dImpl, nn::AdaptiveMaxPool1dImpl, nn::AdaptiveMaxPool2dImpl,
      nn::AdaptiveMaxPool3dImpl, nn::ReflectionPad1dImpl, nn::ReflectionPad2dImpl,
      nn::ReflectionPad3dImpl, nn::ReplicationPad1dImpl, nn::ReplicationPad2dImpl,
      nn::ReplicationPad3dImpl, nn::ZeroPad1dImpl, nn::ZeroPad2dImpl, nn::ZeroPad3dImpl,
      nn::ConstantPad1dImpl, nn::ConstantPad2dImpl, nn::ConstantPad3dImpl, nn::FlattenImpl,
      nn::UnflattenImpl, nn::FoldImpl, nn::UnfoldImpl, nn::PixelShuffleImpl, nn::PixelUnshuffleImpl,
      nn::UpsampleImpl, nn::DropoutImpl, nn::Dropout2dImpl, nn::Dropout3dImpl, nn::AlphaDropoutImpl,
      nn::FeatureAlphaDropoutImpl, nn::ReLUImpl, nn::ReLU6Impl, nn::SELUImpl, nn::ELUImpl,
      nn::CELUImpl, nn::SoftmaxImpl, nn::LogSoftmaxImpl, nn::SoftminImpl, nn::GLUImpl,
      nn::HardshrinkImpl, nn::SoftshrinkImpl, nn::LeakyReLUImpl, nn::RReLUImpl, nn::HardtanhImpl,
      nn::ThresholdImpl, nn::SoftplusImpl, nn::GELUImpl, nn::PReLUImpl>(module);
}

}  // namespace sconce::extra_repr
