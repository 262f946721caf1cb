#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

namespace sconce::vision::models {

/// Options for a vision transformer, with the same names as in torchvision. The defaults correspond
/// to ViT-B/16.
struct VisionTransformerOptions {
  int64_t image_size = 224;      ///< height and width of the images; a multiple of `patch_size`
  int64_t patch_size = 16;       ///< height and width of a patch
  int64_t num_layers = 12;       ///< number of encoder layers
  int64_t num_heads = 12;        ///< number of attention heads; must divide `hidden_dim`
  int64_t hidden_dim = 768;      ///< number of features per patch
  int64_t mlp_dim = 3072;        ///< number of features between the linear layers
  double dropout = 0;            ///< dropout probability for all dropout layers except attention
  double attention_dropout = 0;  ///< dropout probability of the attention weights
  int64_t num_classes = 1000;    ///< number of outputs
  /// Number of features in an additional tanh layer before the last layer. By default, this layer
  /// is omitted.
  std::optional<int64_t> representation_size = {};
};

/// A vision transformer. The parameters have the same names as in torchvision and, for the same
/// seed with PyTorch 2.15, the same initial values. Weights can therefore be exchanged with
/// torchvision in both directions, using `nn::state_dict` and `nn::load_state_dict`. The last
/// module, `heads`, contains "head", preceded by "pre_logits" and "act" if `representation_size` is
/// set.
///
/// Python: `torchvision.models.VisionTransformer`, without `norm_layer` and `conv_stem_configs`.
class VisionTransformerImpl : public torch::nn::Cloneable<VisionTransformerImpl> {
 public:
  /// Constructs a network with the given options.
  /// @throw c10::Error if:
  /// - a size or count is below 1;
  /// - `patch_size` does not divide `image_size`, or `num_heads` does not divide `hidden_dim`;
  /// - a dropout probability is not between 0 and 1.
  explicit VisionTransformerImpl(VisionTransformerOptions options = {});

  void reset() override;

  /// Returns logits of shape `(N, num_classes)` for images of shape
  /// `(N, 3, image_size, image_size)`.
  /// @throw c10::Error, before any computation, if the images have a different shape.
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor class_token;              ///< `(1, 1, hidden_dim)`, prepended to the patches
  torch::nn::Conv2d conv_proj = nullptr;  ///< from patches to features
  torch::nn::AnyModule encoder;           ///< position embedding, encoder layers, and norm
  torch::nn::Sequential heads = nullptr;  ///< from the class token to the logits

 private:
  VisionTransformerOptions options_;
};
/// Module holder for `VisionTransformerImpl`.
/// Python: `torchvision.models.VisionTransformer`.
TORCH_MODULE(VisionTransformer);

/// Constructs a ViT-B/16.
/// Python: `torchvision.models.vit_b_16`.
/// @throw c10::Error if:
/// - `VisionTransformerImpl` throws;
/// - an option would change the architecture: `patch_size`, `num_layers`, `num_heads`,
///   `hidden_dim`, or `mlp_dim`.
VisionTransformer vit_b_16(const VisionTransformerOptions& options = {});

}  // namespace sconce::vision::models
