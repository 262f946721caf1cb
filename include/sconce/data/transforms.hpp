#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/expanding_array.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

/// Transforms of whole batches of images, (N, C, H, W), on the device where the batch is, with the
/// names and arguments of `torchvision.transforms.v2`. They change no image that they are given,
/// keep no state, so that several threads may share one, and read nothing from a GPU.
///
/// What is random is drawn by the CPU generator that the call is given, so one seed gives the same
/// choices on every device; no other generator is touched.
namespace sconce::data {

/// Brings each channel to (image - mean) / std.
/// Python: `torchvision.transforms.v2.Normalize(mean, std)`.
class Normalize {
 public:
  /// Takes a value for each channel.
  /// @throw c10::Error if there is no channel, if `mean` and `std` are not of one length, or if a
  /// value of `std` is 0.
  Normalize(std::vector<double> mean, std::vector<double> std);

  /// Returns the images in their own type, which is a floating one.
  /// @throw c10::Error if `images` is undefined, not (N, C, H, W), not of a floating type, or has
  /// other than as many channels as `mean`.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::vector<double> mean_;
  std::vector<double> std_;
};

/// Scales images to one size, bilinearly and with antialiasing.
/// Python: `torchvision.transforms.v2.Resize([height, width])`.
class Resize {
 public:
  /// Takes height and width in pixels.
  /// @throw c10::Error if one is below 1.
  explicit Resize(std::array<int64_t, 2> size);

  /// Returns (N, C, height, width) in the type of the images, rounded to the nearest where that is
  /// an integer type. Images of that size already come back as they are, the same tensor. As in
  /// torchvision the CPU computes uint8 in integers and a GPU does in floats: they may differ by 1.
  /// @throw c10::Error if `images` is undefined, not (N, C, H, W), without a pixel to an image, or
  /// neither of a floating nor of an integer type.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::array<int64_t, 2> size_;
};

/// Cuts a part of one size out of each image, at a place of its own. Python:
/// `torchvision.transforms.v2.RandomCrop(size, padding)`, which is given images one at a time: of a
/// batch it cuts all at one place.
class RandomCrop {
 public:
  /// Takes height and width in pixels, and by how many pixels of 0 the images are enlarged before,
  /// on all sides or at the left, top, right and bottom.
  /// @throw c10::Error if one of the size is below 1, or of the padding below 0.
  explicit RandomCrop(std::array<int64_t, 2> size, torch::ExpandingArray<4> padding = 0);

  /// Returns (N, C, height, width). It draws N upper edges and then N left ones, each by one
  /// `torch.randint`.
  /// @throw c10::Error if `images` is undefined, not (N, C, H, W) or with the padding smaller than
  /// the size, or if `generator` is none of the CPU.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  std::array<int64_t, 2> size_;
  torch::ExpandingArray<4> padding_;
};

/// Mirrors each image, left to right, with a probability. Python:
/// `torchvision.transforms.v2.RandomHorizontalFlip(p)`, which for the same seed mirrors the same
/// images if it is given one after the other: of a batch it mirrors all or none.
class RandomHorizontalFlip {
 public:
  /// @throw c10::Error if `p` is not in 0 to 1.
  explicit RandomHorizontalFlip(double p = 0.5);

  /// Returns a new batch. It draws by one `torch.rand(N)`.
  /// @throw c10::Error if `images` is undefined or not (N, C, H, W), or if `generator` is none of
  /// the CPU.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  double p_;
};

/// What takes a batch of images and a generator and returns a batch: a class above, a `Compose`, a
/// function of one's own.
template <class T>
concept RandomTransform = requires(const T& transform, const torch::Tensor& images,
                                   const at::Generator& generator) {
  { transform(images, generator) } -> std::convertible_to<torch::Tensor>;
};

/// The same, or what takes a batch of images alone.
template <class T>
concept Transform = RandomTransform<T> ||
    requires(const T& transform, const torch::Tensor& images) {
  { transform(images) } -> std::convertible_to<torch::Tensor>;
};

/// Calls transforms one after the other:
/// `Compose augment(RandomCrop({28, 28}, 2), RandomHorizontalFlip(), Normalize({0.5}, {0.2}));`
/// Python: `torchvision.transforms.v2.Compose`.
class Compose {
 public:
  /// Takes copies of the transforms; of none it makes what returns its images.
  template <Transform... Ts>
  explicit Compose(Ts... transforms) {
    (push_back(std::move(transforms)), ...);
  }

  /// Adds one behind the others. Python: `compose.transforms.append(transform)`.
  template <Transform T>
  void push_back(T transform) {
    if constexpr (RandomTransform<T>) {
      transforms_.emplace_back(std::move(transform));
    } else {
      transforms_.emplace_back(
          [transform = std::move(transform)](const torch::Tensor& images,
                                             const at::Generator&) -> torch::Tensor {
            return transform(images);
          });
    }
  }

  /// Returns what the last transform does. Those that take a generator share the one given, which
  /// is needed if there are any.
  /// @throw c10::Error as the transforms do.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator = {}) const;

 private:
  using Step = std::function<torch::Tensor(const torch::Tensor&, const at::Generator&)>;
  std::vector<Step> transforms_ = {};
};

}  // namespace sconce::data
