#pragma once

#include <torch/nn/modules.h>

#include <string>
#include <tuple>

#include "repr/extra_repr_text.hpp"

// These overloads handle pooling, padding, and shapes.
namespace sconce::extra_repr {

namespace nn = torch::nn;

template <size_t D, typename Derived>
std::string of(const nn::MaxPoolImpl<D, Derived>& m) {
  const auto& o = m.options;
  return list({named("kernel_size", number(o.kernel_size())), named("stride", number(o.stride())),
               named("padding", number(o.padding())), named("dilation", number(o.dilation())),
               named("ceil_mode", o.ceil_mode())});
}

template <size_t D, typename Derived>
std::string of(const nn::AvgPoolImpl<D, Derived>& m) {
  // Python converts a number to a tuple only for 1-dim layers.
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

}  // namespace sconce::extra_repr
