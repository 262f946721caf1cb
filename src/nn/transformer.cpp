#include "sconce/nn/transformer.hpp"

#include <torch/types.h>

#include <cmath>

#include "nn/attention_inputs.hpp"
#include "nn/keep_generator.hpp"
#include "sconce/repr.hpp"

namespace sconce::nn {

namespace {

// Whether the mask is the causal one of its size. Only a mask on the CPU is looked at.
bool is_causal_mask(const torch::Tensor& mask) {
  if (!mask.defined() || !mask.is_cpu() || mask.dim() != 2) return false;
  return mask.equal(torch::full_like(mask, -INFINITY).triu(1));
}

}  // namespace

template <class Derived, class Layer>
TransformerStack<Derived, Layer>::TransformerStack(TransformerStackOptions<Layer> from)
    : options(std::move(from)) {
  TORCH_CHECK(
      options.num_layers() > 0 && !options.layer().is_empty(),
      "sconce::nn::TransformerStackOptions: expected a layer and a positive num_layers, got ",
      options.layer().is_empty() ? "no" : "a", " layer and ", options.num_layers());
  reset();
}

template <class Derived, class Layer>
void TransformerStack<Derived, Layer>::reset() {
  const KeepGenerator kept;  // cloning draws numbers and then copies the weights over them
  layers = this->register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.layer()->clone());
  if (options.norm().is_empty()) return;
  norm = options.norm().clone();
  this->register_module("norm", norm.ptr());
}

template <class Derived, class Layer>
void TransformerStack<Derived, Layer>::pretty_print(std::ostream& stream) const {
  stream << repr(*this);
}

template <class Derived, class Layer>
typename Layer::ContainedType& TransformerStack<Derived, Layer>::first() {
  return layers->template at<typename Layer::ContainedType>(0);
}

template class TransformerStack<TransformerEncoderImpl, TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderImpl, TransformerDecoderLayer>;

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions from)
    : TransformerStack(std::move(from)) {}

torch::Tensor TransformerEncoderImpl::forward(const torch::Tensor& src, const EncoderArgs& args) {
  check_attention("sconce::nn::TransformerEncoder", first().self_attn->options, src, src, src,
                  attention_args(args));
  const auto dtype = src.scalar_type();
  const EncoderArgs each = {
      .src_mask = additive_mask(args.src_mask, dtype),
      .src_key_padding_mask = additive_mask(args.src_key_padding_mask, dtype),
      .is_causal = args.is_causal ? *args.is_causal : is_causal_mask(args.src_mask)};
  auto x = src;
  for (auto& layer : *layers) x = layer->as<TransformerEncoderLayer>()->forward(x, each);
  return norm.is_empty() ? x : norm.forward(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions from)
    : TransformerStack(std::move(from)) {}

torch::Tensor TransformerDecoderImpl::forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                                              const DecoderArgs& args) {
  check_decoder("sconce::nn::TransformerDecoder", first().self_attn->options, tgt, memory, args);
  const auto dtype = tgt.scalar_type();
  const DecoderArgs each = {
      .tgt_mask = additive_mask(args.tgt_mask, dtype),
      .memory_mask = additive_mask(args.memory_mask, dtype),
      .tgt_key_padding_mask = additive_mask(args.tgt_key_padding_mask, dtype),
      .memory_key_padding_mask = additive_mask(args.memory_key_padding_mask, dtype),
      .tgt_is_causal = args.tgt_is_causal ? *args.tgt_is_causal : is_causal_mask(args.tgt_mask),
      .memory_is_causal = args.memory_is_causal};
  auto x = tgt;
  for (auto& layer : *layers) x = layer->as<TransformerDecoderLayer>()->forward(x, memory, each);
  return norm.is_empty() ? x : norm.forward(x);
}

}  // namespace sconce::nn
