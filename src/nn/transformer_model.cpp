#include "sconce/nn/transformer_model.hpp"

#include <ATen/ops/full.h>
#include <torch/nn/init.h>

#include <cmath>

namespace sconce::nn {

namespace {

using torch::nn::AnyModule;

TransformerLayerOptions layer_options(const TransformerOptions& of) {
  return TransformerLayerOptions(of.d_model(), of.nhead())
      .dim_feedforward(of.dim_feedforward())
      .dropout(of.dropout())
      .activation(of.activation())
      .layer_norm_eps(of.layer_norm_eps())
      .batch_first(of.batch_first())
      .norm_first(of.norm_first())
      .bias(of.bias());
}

template <class Stack, class Layer>
AnyModule make_stack(const TransformerOptions& of, int64_t num_layers) {
  const auto norm = LayerNormOptions(of.d_model()).eps(of.layer_norm_eps()).bias(of.bias());
  return AnyModule(Stack(Layer(layer_options(of)), num_layers, AnyModule(LayerNorm(norm))));
}

}  // namespace

// A clone initially refers to the original's modules but must not share them.
void TransformerImpl::reset() {
  const auto begin = [](AnyModule& part, const AnyModule& custom, const auto& make) {
    part = !part.is_empty() ? part.clone() : custom.is_empty() ? make() : custom;
  };
  begin(encoder, options.custom_encoder(), [this] {
    return make_stack<TransformerEncoder, TransformerEncoderLayer>(options,
                                                                   options.num_encoder_layers());
  });
  register_module("encoder", encoder.ptr());
  begin(decoder, options.custom_decoder(), [this] {
    return make_stack<TransformerDecoder, TransformerDecoderLayer>(options,
                                                                   options.num_decoder_layers());
  });
  register_module("decoder", decoder.ptr());
  reset_parameters();
}

void TransformerImpl::reset_parameters() {
  for (auto& parameter : parameters()) {
    if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  }
}

torch::Tensor TransformerImpl::forward(const torch::Tensor& src, const torch::Tensor& tgt,
                                       const TransformerArgs& args) {
  constexpr const char* error_prefix = "sconce::nn::Transformer: expected ";
  const int64_t batch = options.batch_first() ? 0 : 1;
  TORCH_CHECK(src.dim() != 3 || (tgt.dim() == 3 && src.size(batch) == tgt.size(batch)),
              error_prefix, "a src and a tgt with the same batch size, got ", src.sizes(), " and ",
              tgt.sizes());
  TORCH_CHECK(src.dim() > 0 && tgt.dim() > 0 && src.size(-1) == options.d_model() &&
                  tgt.size(-1) == options.d_model(),
              error_prefix, "a src and a tgt with ", options.d_model(), " features, got ",
              src.sizes(), " and ", tgt.sizes());
  const auto memory =
      encoder.forward(src, EncoderArgs{.src_mask = args.src_mask,
                                       .src_key_padding_mask = args.src_key_padding_mask,
                                       .is_causal = args.src_is_causal});
  return decoder.forward(tgt, memory,
                         DecoderArgs{.tgt_mask = args.tgt_mask,
                                     .memory_mask = args.memory_mask,
                                     .tgt_key_padding_mask = args.tgt_key_padding_mask,
                                     .memory_key_padding_mask = args.memory_key_padding_mask,
                                     .tgt_is_causal = args.tgt_is_causal,
                                     .memory_is_causal = args.memory_is_causal});
}

torch::Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz,
                                                               const torch::TensorOptions& of) {
  return at::full({sz, sz}, -INFINITY, of).triu(1);
}

}  // namespace sconce::nn
