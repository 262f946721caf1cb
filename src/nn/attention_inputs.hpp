#pragma once

#include <utility>

#include "sconce/nn/transformer_layer.hpp"

namespace sconce::nn {

// Throws an error that begins with `who`, if forward of an attention with these options refuses the
// arguments. It looks at no value, so it can be called before any work.
void check_attention(const char* who, const MultiheadAttentionOptions& options,
                     const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const AttentionArgs& args);

// Returns the mask as numbers to add: minus infinity where a bool mask is true. A mask of floats,
// or none, stays as it is. Python: torch.nn.functional._canonical_mask.
torch::Tensor additive_mask(const torch::Tensor& mask, torch::ScalarType dtype);

// The arguments for the attention of an encoder layer.
inline AttentionArgs attention_args(const EncoderArgs& args) {
  return {.key_padding_mask = args.src_key_padding_mask,
          .attn_mask = args.src_mask,
          .need_weights = false,
          .is_causal = args.is_causal.value_or(false)};
}

// The arguments for the two attentions of a decoder layer.
inline std::pair<AttentionArgs, AttentionArgs> attention_args(const DecoderArgs& args) {
  return {{.key_padding_mask = args.tgt_key_padding_mask,
           .attn_mask = args.tgt_mask,
           .need_weights = false,
           .is_causal = args.tgt_is_causal.value_or(false)},
          {.key_padding_mask = args.memory_key_padding_mask,
           .attn_mask = args.memory_mask,
           .need_weights = false,
           .is_causal = args.memory_is_causal}};
}

// The same as check_attention for both attentions of a decoder layer.
inline void check_decoder(const char* who, const MultiheadAttentionOptions& options,
                          const torch::Tensor& tgt, const torch::Tensor& memory,
                          const DecoderArgs& args) {
  const auto [to_tgt, to_memory] = attention_args(args);
  check_attention(who, options, tgt, tgt, tgt, to_tgt);
  check_attention(who, options, tgt, memory, memory, to_memory);
}

}  // namespace sconce::nn
