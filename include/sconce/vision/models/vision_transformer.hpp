#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

namespace sconce::vision::models {

/// Options of a vision transformer, with torchvision's names. The defaults are those of ViT-B/16.
struct VisionTransformerOptions {
  int64_t image_size = 224;      ///< height and width of the pictures, divided by `patch_size`
  int64_t patch_size = 16;       ///< height and width of a patch
  int64_t num_layers = 12;       ///< number of encoder layers
  int64_t num_heads = 12;        ///< number of attention heads, which divides `hidden_dim`
  int64_t hidden_dim = 768;      ///< number of features of a patch
  int64_t mlp_dim = 3072;        ///< number of features between the linear layers
  double dropout = 0;            ///< probability of all dropouts but that of the attention
  double attention_dropout = 0;  ///< probability that an attention weight is dropped
  int64_t num_classes = 1000;    ///< number of outputs
  /// Number of features of a layer with tanh before the last one, or no such layer.
  std::optional<int64_t> representation_size = {};
};

/// Vision transformer. Its parameters have torchvision's names and, from the same seed,
/// torchvision's values under PyTorch 2.15, so weights go both ways by `nn::state_dict` and
/// `nn::load_state_dict`. The last layer is `heads`, with the names "pre_logits" and "act" (with
/// `representation_size`) and "head".
///
/// Python: `torchvision.models.VisionTransformer`, without `norm_layer` and `conv_stem_configs`.
class VisionTransformerImpl : public torch::nn::Cloneable<VisionTransformerImpl> {
 public:
  /// @throw c10::Error if a number is below 1, `patch_size` does not divide `image_size`,
  /// `num_heads` does not divide `hidden_dim`, or a dropout is not between 0 and 1.
  explicit VisionTransformerImpl(VisionTransformerOptions options = {});

  void reset() override;

  /// Takes pictures `(N, 3, image_size, image_size)` and returns the logits `(N, num_classes)`.
  /// @throw c10::Error if the pictures have another shape, before any work.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor class_token;              ///< `(1, 1, hidden_dim)`, put before the patches
  torch::nn::Conv2d conv_proj = nullptr;  ///< from patches to features
  torch::nn::AnyModule encoder;           ///< position embedding, encoder layers and norm
  torch::nn::Sequential heads = nullptr;  ///< from the class token to the logits

 private:
  VisionTransformerOptions options_;
};
/// Module holder of `VisionTransformerImpl`. Python: `torchvision.models.VisionTransformer`.
TORCH_MODULE(VisionTransformer);

/// ViT-B/16. Python: `torchvision.models.vit_b_16`.
/// @throw c10::Error as `VisionTransformerImpl`, or if an option makes another network than
/// ViT-B/16: `patch_size`, `num_layers`, `num_heads`, `hidden_dim` or `mlp_dim`.
VisionTransformer vit_b_16(const VisionTransformerOptions& options = {});

}  // namespace sconce::vision::models
