#include <ATen/ops/cosine_similarity.h>

#include <tuple>
#include <utility>

#include "program/random_networks.hpp"
#include "sconce/nn/transformer.hpp"

namespace sconce::test {

namespace {

using torch::Tensor;
using torch::indexing::Ellipsis;
using torch::indexing::Slice;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

template <class Module>
Layer plain(Module module) {
  return [module](const Tensor& x) mutable { return module->forward(x); };
}

// Creates a layer that supports 1 to 3 dimensions after the channels.
template <class Make1d, class Make2d, class Make3d>
Layer by_dimensions(const LayerMaker& make, const Make1d& make_1d, const Make2d& make_2d,
                    const Make3d& make_3d) {
  switch (make.spatial()) {
    case 1:
      return make_1d();
    case 2:
      return make_2d();
    case 3:
      return make_3d();
    default:
      return {};
  }
}

template <class Module, class Options>
Layer convolution_of(LayerMaker& make, Options options) {
  auto& draw = make.draw;
  options.stride(1 + draw.below(2)).padding(draw.below(2)).dilation(1 + draw.below(2));
  options.bias(!draw.one_in(4));
  if (make.x.size(1) % 2 == 0 && draw.one_in(3)) options.groups(2);
  if (draw.one_in(4)) options.padding_mode(torch::kReflect);
  if (draw.one_in(4)) options.padding_mode(torch::kCircular);
  return plain(make.keep(Module(options)));
}

Layer convolution(LayerMaker& make) {
  const auto in = make.x.dim() > 1 ? make.x.size(1) : 1;
  const auto out = make.draw.of<int64_t>({2, 4, 6});
  const auto kernel = 1 + make.draw.below(3);
  return by_dimensions(
      make, [&] { return convolution_of<nn::Conv1d>(make, nn::Conv1dOptions(in, out, kernel)); },
      [&] { return convolution_of<nn::Conv2d>(make, nn::Conv2dOptions(in, out, kernel)); },
      [&] { return convolution_of<nn::Conv3d>(make, nn::Conv3dOptions(in, out, kernel)); });
}

template <class Module, class Options>
Layer transposed_of(LayerMaker& make, Options options) {
  auto& draw = make.draw;
  options.stride(1 + draw.below(2)).padding(draw.below(2)).bias(!draw.one_in(4));
  if (make.x.size(1) % 2 == 0 && draw.one_in(3)) options.groups(2);
  if (draw.one_in(2)) options.stride(2).output_padding(1);
  return plain(make.keep(Module(options)));
}

Layer transposed_convolution(LayerMaker& make) {
  const auto in = make.x.size(1);
  const auto out = make.draw.of<int64_t>({2, 4});
  const auto kernel = 2 + make.draw.below(2);
  return by_dimensions(
      make,
      [&] {
        return transposed_of<nn::ConvTranspose1d>(make,
                                                  nn::ConvTranspose1dOptions(in, out, kernel));
      },
      [&] {
        return transposed_of<nn::ConvTranspose2d>(make,
                                                  nn::ConvTranspose2dOptions(in, out, kernel));
      },
      [&] {
        return transposed_of<nn::ConvTranspose3d>(make,
                                                  nn::ConvTranspose3dOptions(in, out, kernel));
      });
}

Layer maximum_pooling(LayerMaker& make) {
  const auto stride = 1 + make.draw.below(2);
  const auto padding = make.draw.below(2);
  const bool ceil = make.draw.one_in(3);
  const auto with = [&](auto options) {
    return options.stride(stride).padding(padding).ceil_mode(ceil);
  };
  return by_dimensions(
      make, [&] { return plain(nn::MaxPool1d(with(nn::MaxPool1dOptions(3)))); },
      [&] { return plain(nn::MaxPool2d(with(nn::MaxPool2dOptions({2, 3})))); },
      [&] { return plain(nn::MaxPool3d(with(nn::MaxPool3dOptions(2)))); });
}

Layer average_pooling(LayerMaker& make) {
  const auto stride = 1 + make.draw.below(2);
  const auto padding = make.draw.below(2);
  const bool ceil = make.draw.one_in(3), counts_padding = make.draw.one_in(2);
  const auto with = [&](auto options) {
    return options.stride(stride).padding(padding).ceil_mode(ceil).count_include_pad(
        counts_padding);
  };
  return by_dimensions(
      make, [&] { return plain(nn::AvgPool1d(with(nn::AvgPool1dOptions(2)))); },
      [&] { return plain(nn::AvgPool2d(with(nn::AvgPool2dOptions({3, 2})))); },
      [&] { return plain(nn::AvgPool3d(with(nn::AvgPool3dOptions(2)))); });
}

Layer adaptive_pooling(LayerMaker& make) {
  const auto size = 1 + make.draw.below(4);
  const bool is_average = make.draw.one_in(2);
  return by_dimensions(
      make,
      [&] {
        return is_average ? plain(nn::AdaptiveAvgPool1d(size)) : plain(nn::AdaptiveMaxPool1d(size));
      },
      [&] {
        return is_average ? plain(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({size, 2})))
                          : plain(nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({2, size})));
      },
      [&] {
        return is_average ? plain(nn::AdaptiveAvgPool3d(size)) : plain(nn::AdaptiveMaxPool3d(size));
      });
}

Layer power_pooling(LayerMaker& make) {
  return by_dimensions(
      make, [] { return plain(nn::LPPool1d(nn::LPPool1dOptions(2, 2))); },
      [] { return plain(nn::LPPool2d(nn::LPPool2dOptions(2, std::vector<int64_t>{2, 2}))); },
      [] { return Layer(); });
}

// Fractional pooling chooses random pooling regions even in evaluation mode, so `record` rejects
// it.
Layer pooling_and_back(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  if (make.draw.one_in(6)) {
    return plain(nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(2)));
  }
  return [pool = nn::MaxPool2d(2), back = nn::MaxUnpool2d(2)](const Tensor& x) mutable {
    const auto [most, indices] = pool->forward_with_indices(x);
    return back->forward(most, indices, x.sizes().vec());
  };
}

Layer batch_norm(LayerMaker& make) {
  const auto channels = make.x.size(1);
  const bool affine = !make.draw.one_in(4);
  const auto norm = [&](auto module) {
    module = make.keep(module);
    module->forward(torch::randn_like(make.x) * 2 + 1);  // running statistics
    return plain(module);
  };
  if (make.spatial() == 0) return norm(nn::BatchNorm1d(nn::BatchNorm1dOptions(channels)));
  return by_dimensions(
      make, [&] { return norm(nn::BatchNorm1d(nn::BatchNorm1dOptions(channels).affine(affine))); },
      [&] { return norm(nn::BatchNorm2d(nn::BatchNorm2dOptions(channels).affine(affine))); },
      [&] { return norm(nn::BatchNorm3d(nn::BatchNorm3dOptions(channels).affine(affine))); });
}

Layer instance_norm(LayerMaker& make) {
  const auto channels = make.x.size(1);
  const bool affine = make.draw.one_in(2), tracks = make.draw.one_in(3);
  const auto norm = [&](auto module) {
    module = make.keep(module);
    module->forward(torch::randn_like(make.x) * 2 + 1);
    return plain(module);
  };
  const auto with = [&](auto options) {
    return options.affine(affine).track_running_stats(tracks);
  };
  return by_dimensions(
      make, [&] { return norm(nn::InstanceNorm1d(with(nn::InstanceNorm1dOptions(channels)))); },
      [&] { return norm(nn::InstanceNorm2d(with(nn::InstanceNorm2dOptions(channels)))); },
      [&] { return norm(nn::InstanceNorm3d(with(nn::InstanceNorm3dOptions(channels)))); });
}

Layer group_norm(LayerMaker& make) {
  const auto channels = make.x.size(1);
  const auto groups = channels % 2 == 0 ? make.draw.of<int64_t>({1, 2}) : channels;
  return plain(make.keep(nn::GroupNorm(nn::GroupNormOptions(groups, channels))));
}

Layer layer_norm(LayerMaker& make) {
  const auto begin = make.draw.one_in(2) ? 1 : make.x.dim() - 1;
  const auto shape = make.x.sizes().slice(static_cast<size_t>(begin)).vec();
  return plain(make.keep(
      nn::LayerNorm(nn::LayerNormOptions(shape).elementwise_affine(!make.draw.one_in(3)))));
}

Layer response_norm(LayerMaker& make) {
  if (make.spatial() < 1) return {};
  if (make.spatial() == 2 && make.draw.one_in(3)) return plain(nn::CrossMapLRN2d(3));
  return plain(nn::LocalResponseNorm(nn::LocalResponseNormOptions(3).alpha(0.1)));
}

Layer normalization(LayerMaker& make) {
  const auto p = make.draw.of({1.0, 2.0, 3.0});
  return [p](const Tensor& x) { return F::normalize(x, F::NormalizeFuncOptions().p(p)); };
}

Layer activation(LayerMaker& make) {
  static const std::vector<Layer> kinds = {
      plain(nn::ELU()),
      plain(nn::ELU(nn::ELUOptions().alpha(0.5).inplace(true))),
      plain(nn::SELU()),
      plain(nn::Hardshrink(0.3)),
      plain(nn::Hardtanh()),
      plain(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2))),
      plain(nn::LogSigmoid()),
      plain(nn::ReLU()),
      plain(nn::ReLU6()),
      plain(nn::CELU()),
      plain(nn::GELU()),
      plain(nn::GELU(nn::GELUOptions().approximate("tanh"))),
      plain(nn::SiLU()),
      plain(nn::Mish()),
      plain(nn::Sigmoid()),
      plain(nn::Softplus()),
      plain(nn::Softshrink(0.2)),
      plain(nn::Softsign()),
      plain(nn::Tanh()),
      plain(nn::Tanhshrink()),
      plain(nn::Threshold(0.1, 20)),
      plain(nn::Softmax(1)),
      plain(nn::Softmin(1)),
      plain(nn::LogSoftmax(1)),
      [](const Tensor& x) { return torch::hardswish(x); },
      [](const Tensor& x) { return torch::hardsigmoid(x); },
      [](const Tensor& x) { return x.clamp(-0.5, 1.5); },
      [](const Tensor& x) { return torch::square(x).add(1).log(); },
      [](const Tensor& x) { return torch::erf(x) + torch::atan(x) * torch::cos(x); },
      [](const Tensor& x) { return x.abs().sqrt().floor() + x.sign() + x.frac(); }};
  return make.draw.from(kinds);
}

Layer learned_activation(LayerMaker& make) {
  if (make.draw.one_in(4)) return plain(make.keep(nn::RReLU()));
  return plain(make.keep(nn::PReLU(nn::PReLUOptions().num_parameters(make.x.size(1)))));
}

Layer gated_activation(LayerMaker& make) {
  if (make.x.size(1) % 2 != 0) return {};
  return plain(nn::GLU(1));
}

Layer softmax_of_planes(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  return plain(nn::Softmax2d());
}

Layer constant_padding(LayerMaker& make) {
  return by_dimensions(
      make, [] { return plain(nn::ConstantPad1d(nn::ConstantPad1dOptions({1, 2}, 0.5))); },
      [&] {
        return make.draw.one_in(2)
                   ? plain(nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 0, 2, 1})))
                   : plain(nn::ConstantPad2d(nn::ConstantPad2dOptions({1, 0, -1, 1}, 0.5)));
      },
      [] { return plain(nn::ConstantPad3d(nn::ConstantPad3dOptions(1, 0.5))); });
}

Layer reflecting_padding(LayerMaker& make) {
  return by_dimensions(
      make, [] { return plain(nn::ReflectionPad1d(nn::ReflectionPad1dOptions({1, 2}))); },
      [] { return plain(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 0, 2, 1}))); },
      [] { return plain(nn::ReflectionPad3d(nn::ReflectionPad3dOptions(1))); });
}

Layer repeating_padding(LayerMaker& make) {
  const bool is_circular = make.draw.one_in(2);
  return by_dimensions(
      make,
      [&]() -> Layer {
        if (!is_circular) return plain(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({1, 2})));
        return [](const Tensor& x) {
          return F::pad(x, F::PadFuncOptions({1, 2}).mode(torch::kCircular));
        };
      },
      [&]() -> Layer {
        if (!is_circular) {
          return plain(nn::ReplicationPad2d(nn::ReplicationPad2dOptions({1, 0, 2, 1})));
        }
        return [](const Tensor& x) {
          return F::pad(x, F::PadFuncOptions({1, 0, 1, 1}).mode(torch::kCircular));
        };
      },
      [] { return plain(nn::ReplicationPad3d(nn::ReplicationPad3dOptions(1))); });
}

Layer upsampling(LayerMaker& make) {
  auto options = nn::UpsampleOptions();
  const auto dimensions = static_cast<size_t>(std::max<int64_t>(make.spatial(), 0));
  options.size(std::vector<int64_t>(dimensions, make.draw.of<int64_t>({3, 6})));
  if (make.draw.one_in(2)) return dimensions == 0 ? Layer() : plain(nn::Upsample(options));
  options.align_corners(make.draw.one_in(2));
  const bool is_cubic = make.draw.one_in(2);
  return by_dimensions(
      make, [&] { return plain(nn::Upsample(options.mode(torch::kLinear))); },
      [&] {
        if (is_cubic) return plain(nn::Upsample(options.mode(torch::kBicubic)));
        return plain(nn::Upsample(options.mode(torch::kBilinear)));
      },
      [&] { return plain(nn::Upsample(options.mode(torch::kTrilinear))); });
}

Layer interpolation(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  if (make.draw.one_in(2)) {
    return [](const Tensor& x) {
      return F::interpolate(x, F::InterpolateFuncOptions()
                                   .size(std::vector<int64_t>{5, 3})
                                   .mode(torch::kBilinear)
                                   .align_corners(false)
                                   .antialias(true));
    };
  }
  if (make.draw.one_in(2)) {
    return [](const Tensor& x) {
      const auto options = F::InterpolateFuncOptions().mode(torch::kArea);
      return F::interpolate(x, F::InterpolateFuncOptions(options).size(std::vector<int64_t>{3, 2}));
    };
  }
  return [scale = make.draw.of({1.5, 2.0}), recompute = make.draw.one_in(2)](const Tensor& x) {
    auto options = F::InterpolateFuncOptions().mode(torch::kNearest);
    options.scale_factor(std::vector<double>{scale, 2.0}).recompute_scale_factor(recompute);
    return F::interpolate(x, options);
  };
}

Layer sampling(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  auto layer = make.keep(nn::Linear(make.x.size(1), 6));
  return [layer](const Tensor& x) mutable {
    const auto theta = layer->forward(x.mean({2, 3})).view({-1, 2, 3}).tanh();
    const auto grid = F::affine_grid(theta, x.sizes(), /*align_corners=*/false);
    return F::grid_sample(x, grid, F::GridSampleFuncOptions().align_corners(false));
  };
}

Layer shuffling(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  if (make.draw.one_in(3)) {
    if (make.x.size(1) % 2 != 0) return {};
    return [](const Tensor& x) { return torch::channel_shuffle(x, 2); };
  }
  if (make.x.size(1) % 4 == 0) return plain(nn::PixelShuffle(2));
  if (make.x.size(2) % 2 != 0 || make.x.size(3) % 2 != 0) return {};
  return plain(nn::PixelUnshuffle(2));
}

Layer folding(LayerMaker& make) {
  if (make.spatial() != 2) return {};
  auto unfold = nn::Unfold(nn::UnfoldOptions({2, 2}).stride(2));
  if (make.draw.one_in(2)) return plain(unfold);
  const std::vector<int64_t> size = {make.x.size(2), make.x.size(3)};
  auto fold = nn::Fold(nn::FoldOptions(size, {2, 2}).stride(2));
  return [unfold, fold](const Tensor& x) mutable { return fold->forward(unfold->forward(x)); };
}

Layer sliding_windows(LayerMaker& make) {
  if (make.spatial() < 1 || make.x.size(-1) < 3) return {};
  return [](const Tensor& x) { return x.unfold(x.dim() - 1, 3, 1).sum(-1); };
}

Layer linear(LayerMaker& make) {
  const auto options = nn::LinearOptions(make.x.size(-1), make.draw.of<int64_t>({3, 4, 8}));
  return plain(make.keep(nn::Linear(nn::LinearOptions(options).bias(!make.draw.one_in(4)))));
}

Layer bilinear(LayerMaker& make) {
  const auto width = make.x.size(-1);
  auto layer = make.keep(nn::Bilinear(nn::BilinearOptions(width, width, 3)));
  return [layer](const Tensor& x) mutable { return layer->forward(x, x.tanh()); };
}

// Applies a layer for sequences of shape (rows, length, width) to tensors of shape (rows, width,
// length).
template <class F>
Layer over_length(const LayerMaker& make, F layer) {
  if (make.spatial() != 1) return {};
  return [layer](const Tensor& x) mutable { return layer(x.transpose(1, 2)).transpose(1, 2); };
}

int64_t heads_for(int64_t width) {
  return width % 2 == 0 ? 2 : 1;
}

Layer attention(LayerMaker& make) {
  const auto width = make.x.size(1);
  auto layer = make.keep(nn::MultiheadAttention(width, heads_for(width)));
  return over_length(make, [layer](const Tensor& x) mutable {
    const auto sequence_first = x.transpose(0, 1);
    const auto attended = layer->forward(sequence_first, sequence_first, sequence_first);
    return std::get<0>(attended).transpose(0, 1) + std::get<1>(attended).mean();
  });
}

Layer dot_product_attention(LayerMaker& make) {
  const auto width = make.x.size(1);
  auto layer = make.keep(nn::Linear(width, 3 * width));
  const bool is_causal = make.draw.one_in(2);
  return over_length(make, [layer, is_causal, heads = heads_for(width)](const Tensor& x) mutable {
    const auto parts = layer->forward(x).unflatten(2, {heads, -1}).transpose(1, 2).chunk(3, -1);
    const auto mask =
        is_causal ? Tensor() : torch::ones({x.size(1), x.size(1)}).tril().to(at::kBool);
    return torch::scaled_dot_product_attention(parts[0], parts[1], parts[2], mask, 0, is_causal)
        .transpose(1, 2)
        .flatten(2);
  });
}

Layer transformer_layer(LayerMaker& make) {
  const auto width = make.x.size(1);
  if (make.draw.one_in(3)) {
    auto layer = make.keep(nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(width, heads_for(width)).dim_feedforward(8)));
    return over_length(make, [layer](const Tensor& x) mutable {
      return layer->forward(x.transpose(0, 1)).transpose(0, 1);
    });
  }
  // LibTorch's decoder compares the values of its two inputs, so `record` rejects it.
  if (make.draw.one_in(10)) {
    auto layer = make.keep(nn::TransformerDecoderLayer(
        nn::TransformerDecoderLayerOptions(width, heads_for(width)).dim_feedforward(8)));
    return over_length(make, [layer](const Tensor& x) mutable {
      const auto sequence_first = x.transpose(0, 1);
      return layer->forward(sequence_first, sequence_first.relu()).transpose(0, 1);
    });
  }
  if (make.draw.one_in(3)) {
    auto options = sconce::nn::TransformerDecoderLayerOptions(width, heads_for(width));
    auto layer = make.keep(
        sconce::nn::TransformerDecoderLayer(options.dim_feedforward(8).batch_first(true)));
    return over_length(make,
                       [layer](const Tensor& x) mutable { return layer->forward(x, x.relu()); });
  }
  auto options = sconce::nn::TransformerEncoderLayerOptions(width, heads_for(width));
  options.dim_feedforward(8).batch_first(true).norm_first(make.draw.one_in(2));
  auto layer = make.keep(sconce::nn::TransformerEncoderLayer(options));
  return over_length(make, [layer](const Tensor& x) mutable { return layer->forward(x); });
}

template <class Module, class Options>
Layer recurrent(LayerMaker& make) {
  auto options = Options(make.x.size(1), make.draw.of<int64_t>({3, 4}));
  options.batch_first(true).num_layers(1 + make.draw.below(2));
  options.bidirectional(make.draw.one_in(3)).bias(!make.draw.one_in(4));
  auto layer = make.keep(Module(options));
  return over_length(make,
                     [layer](const Tensor& x) mutable { return std::get<0>(layer->forward(x)); });
}

Layer lstm(LayerMaker& make) {
  return recurrent<nn::LSTM, nn::LSTMOptions>(make);
}

Layer gru(LayerMaker& make) {
  return recurrent<nn::GRU, nn::GRUOptions>(make);
}

Layer rnn(LayerMaker& make) {
  return recurrent<nn::RNN, nn::RNNOptions>(make);
}

// Runs a cell once per step.
Layer recurrent_cell(LayerMaker& make) {
  const auto width = make.x.size(1);
  if (make.draw.one_in(2)) {
    auto cell = make.keep(nn::GRUCell(nn::GRUCellOptions(width, 4)));
    return over_length(make, [cell](const Tensor& x) mutable {
      auto state = torch::zeros({x.size(0), 4}, x.options());
      std::vector<Tensor> states;
      for (int64_t i = 0; i < x.size(1); ++i) {
        states.push_back(state = cell->forward(x.select(1, i), state));
      }
      return torch::stack(states, 1);
    });
  }
  auto cell = make.keep(nn::LSTMCell(nn::LSTMCellOptions(width, 4)));
  return over_length(make, [cell](const Tensor& x) mutable {
    auto state = cell->forward(x.select(1, 0));
    for (int64_t i = 1; i < x.size(1); ++i) state = cell->forward(x.select(1, i), state);
    return std::get<0>(state).unsqueeze(1) + x.mean(2, true);
  });
}

Layer slices(LayerMaker& make) {
  if (make.x.size(-1) < 2) return {};
  return [](const Tensor& x) {
    const auto turned = x.flip({-1}).roll(1, -1);
    return torch::cat({x.index({Ellipsis, Slice(1)}), turned.narrow(-1, 0, 1)}, -1) +
           x.index({Slice(), 0}).unsqueeze(1) + x.cumsum(1);
  };
}

Layer gathering(LayerMaker& make) {
  const auto last = make.x.size(1) - 1;
  const auto order = torch::randint(last + 1, {3});
  make.owner.register_buffer("order" + std::to_string(make.owner.buffers().size()), order);
  return [order](const Tensor& x) {
    const auto picked = x.index_select(1, order) + x.index({Slice(), order});
    const auto places = x.argsort(1, false).narrow(1, 0, 1).expand_as(x.narrow(1, 0, 1));
    return picked + x.gather(1, places) + torch::take_along_dim(x, places, 1);
  };
}

Layer largest(LayerMaker& make) {
  const auto count = std::min<int64_t>(2, make.x.size(-1));
  return [count](const Tensor& x) {
    const auto [values, indices] = x.topk(count, -1);
    const auto [sorted, order] = x.sort(-1);
    return torch::cat({values, indices.to(x.scalar_type()), sorted}, -1);
  };
}

Layer masks(LayerMaker&) {
  return [](const Tensor& x) {
    const auto mask = x > x.mean(1, true);
    const auto filled = x.masked_fill(mask, -1).where(x < 0.5, x * 2);
    return torch::where(mask.logical_not(), filled, torch::zeros_like(x)) +
           mask.to(x.scalar_type());
  };
}

Layer flattening(LayerMaker& make) {
  if (make.draw.one_in(2)) return plain(nn::Flatten());
  return [](const Tensor& x) { return x.reshape({x.size(0), -1}).unsqueeze(1); };
}

Layer unflattening(LayerMaker& make) {
  if (make.x.size(1) % 2 != 0 || make.spatial() > 2) return {};
  return plain(nn::Unflatten(nn::UnflattenOptions(1, {2, make.x.size(1) / 2})));
}

Layer rearranging(LayerMaker& make) {
  if (make.spatial() < 1) return {};
  return [](const Tensor& x) {
    const auto turned = x.transpose(1, -1).contiguous();
    return turned.view({x.size(0), x.size(-1), -1}).movedim(2, 1).unsqueeze(2).squeeze(2);
  };
}

Layer over_rows(LayerMaker& make) {
  if (make.spatial() < 1) return {};
  auto layer = make.keep(nn::Linear(make.x.size(-1), 4));
  return [layer](const Tensor& x) mutable {
    const auto rows = layer->forward(x.reshape({-1, x.size(-1)}));
    auto shape = x.sizes().vec();
    shape.back() = 4;
    return rows.view(shape);
  };
}

Layer repeating(LayerMaker& make) {
  if (make.x.size(1) > 4) return {};
  return [](const Tensor& x) {
    std::vector<int64_t> repeats(static_cast<size_t>(x.dim()), 1);
    repeats[1] = 2;
    return x.repeat(repeats) + x.repeat_interleave(2, 1) +
           x.narrow(1, 0, 1).expand_as(x).tile(repeats);
  };
}

Layer splitting(LayerMaker& make) {
  if (make.x.size(1) < 2) return {};
  return [](const Tensor& x) {
    auto parts = x.split(1, 1);
    std::swap(parts[0], parts[1]);
    const auto halves = x.chunk(2, 1);
    return torch::cat(parts, 1) * torch::cat({halves[1], halves[0]}, 1) +
           torch::stack(x.unbind(1), 1);
  };
}

Layer residual(LayerMaker& make) {
  const auto inner = make.draw.one_in(2) ? activation(make) : group_norm(make);
  return [inner](const Tensor& x) { return x + inner(x * 0.5); };
}

Layer reductions(LayerMaker& make) {
  static const std::vector<Layer> kinds = {
      [](const Tensor& x) { return x - x.mean(1, true); },
      [](const Tensor& x) { return x / (1 + x.var(1, false, true)); },
      [](const Tensor& x) { return x - torch::logsumexp(x, {1}, true); },
      [](const Tensor& x) { return x - x.amax({1}, true) + x.amin({1}, true); },
      [](const Tensor& x) { return x / (1 + x.norm(2, {1}, true)); },
      [](const Tensor& x) { return x * x.argmax(1, true).to(at::kFloat) + x.prod(1, true); },
      [](const Tensor& x) {
        return x + std::get<0>(x.max(1, true)) + std::get<0>(x.median(1, true));
      },
      [](const Tensor& x) {
        return x * (x > 0).any(1, true) + (x > 0).sum(1, true) + x.std(1, false, true);
      }};
  return make.draw.from(kinds);
}

Layer distances(LayerMaker& make) {
  if (make.x.size(1) < 2) return {};
  return [cosine = nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(1)),
          distance = nn::PairwiseDistance()](const Tensor& x) mutable {
    const auto other = x.roll(1, 1);
    const auto similar = cosine->forward(x, other).unsqueeze(1);
    const auto flat = x.flatten(1);
    const auto apart = distance->forward(flat, flat.tanh());
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape[0] = -1;
    return x * similar + apart.view(shape);
  };
}

Layer products(LayerMaker& make) {
  if (make.spatial() != 1) return {};
  return [](const Tensor& x) {
    const auto squares = torch::einsum("bcl,bdl->bcd", {x, x.tanh()});
    const auto more = torch::baddbmm(squares, x, x.transpose(1, 2), 0.5, 0.1);
    return torch::matmul(more.softmax(-1), x) + torch::bmm(squares.sigmoid(), x);
  };
}

Layer constants(LayerMaker&) {
  return [](const Tensor& x) {
    const auto width = x.size(-1);
    const auto scale = torch::tensor({0.5F, 2.F});
    const auto wave = torch::sin(torch::arange(width) * 0.3) + torch::linspace(0, 1, width);
    const auto mask = torch::ones({width, width}).triu() + torch::eye(width);
    return torch::matmul(x, mask) * scale[0] + wave * scale[1] + torch::full({1}, 0.25);
  };
}

Layer in_place(LayerMaker&) {
  return [](const Tensor& x) {
    auto y = x.clone();
    y.select(-1, 0).mul_(2);
    y.slice(1, 0, 1).add_(1).tanh_();
    y.transpose(1, -1).slice(1, 0, 1).fill_(0.5);
    return y.add_(x).clamp_(-3, 3);
  };
}

Layer filled_parts(LayerMaker&) {
  return [](const Tensor& x) {
    auto shape = x.sizes().vec();
    shape[1] *= 2;
    auto y = torch::empty(shape, x.options());
    y.slice(1, 0, x.size(1)).copy_(x);
    y.slice(1, x.size(1)).copy_(x.sin());
    auto z = torch::zeros_like(y);
    z.index_put_({Slice(), torch::tensor({0})}, y.index({Slice(), torch::tensor({1})}));
    return y + z;
  };
}

Layer casts(LayerMaker&) {
  return [](const Tensor& x) {
    const auto rounded = x.to(at::kInt).to(at::kFloat);
    return (x.to(at::kDouble) * 0.1 + rounded).to(x.scalar_type());
  };
}

Layer positions(LayerMaker& make) {
  auto layer = make.keep(nn::Embedding(64, 1));
  return [layer](const Tensor& x) mutable {
    return x + layer->forward(torch::arange(x.size(-1), x.device())).squeeze(1);
  };
}

Layer dropout(LayerMaker& make) {
  if (make.draw.one_in(3)) return plain(make.keep(nn::AlphaDropout(0.3)));
  if (make.spatial() == 2) return plain(make.keep(nn::Dropout2d(0.3)));
  return plain(make.keep(nn::Dropout(0.3)));
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = {{"convolution", convolution},
                                               {"transposed convolution", transposed_convolution},
                                               {"maximum pooling", maximum_pooling},
                                               {"average pooling", average_pooling},
                                               {"adaptive pooling", adaptive_pooling},
                                               {"power pooling", power_pooling},
                                               {"pooling and back", pooling_and_back},
                                               {"batch norm", batch_norm},
                                               {"instance norm", instance_norm},
                                               {"group norm", group_norm},
                                               {"layer norm", layer_norm},
                                               {"response norm", response_norm},
                                               {"normalization", normalization},
                                               {"activation", activation},
                                               {"activation", activation},
                                               {"activation", activation},
                                               {"learned activation", learned_activation},
                                               {"gated activation", gated_activation},
                                               {"softmax of planes", softmax_of_planes},
                                               {"constant padding", constant_padding},
                                               {"reflecting padding", reflecting_padding},
                                               {"repeating padding", repeating_padding},
                                               {"upsampling", upsampling},
                                               {"interpolation", interpolation},
                                               {"sampling", sampling},
                                               {"shuffling", shuffling},
                                               {"folding", folding},
                                               {"sliding windows", sliding_windows},
                                               {"linear", linear},
                                               {"bilinear", bilinear},
                                               {"attention", attention},
                                               {"dot product attention", dot_product_attention},
                                               {"transformer layer", transformer_layer},
                                               {"lstm", lstm},
                                               {"gru", gru},
                                               {"rnn", rnn},
                                               {"recurrent cell", recurrent_cell},
                                               {"slices", slices},
                                               {"gathering", gathering},
                                               {"largest", largest},
                                               {"masks", masks},
                                               {"flattening", flattening},
                                               {"unflattening", unflattening},
                                               {"rearranging", rearranging},
                                               {"over rows", over_rows},
                                               {"repeating", repeating},
                                               {"splitting", splitting},
                                               {"residual", residual},
                                               {"reductions", reductions},
                                               {"distances", distances},
                                               {"products", products},
                                               {"constants", constants},
                                               {"in place", in_place},
                                               {"filled parts", filled_parts},
                                               {"casts", casts},
                                               {"positions", positions},
                                               {"dropout", dropout}};
  return kinds;
}

}  // namespace sconce::test
