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

/// Transforms of a batch of images `(N, C, H, W)` or of one image `(C, H, W)`, on its device, with
/// the names and arguments of `torchvision.transforms.v2`. They do not change the given images,
/// have no state (so several threads may share one) and read nothing back from a GPU.
///
/// Random choices are drawn from the CPU generator given to the call, so the same seed gives the
/// same choices on every device. No other generator is used.
namespace sconce::vision::transforms {

/// Normalizes each channel: (image - mean) / std.
/// Python: `torchvision.transforms.v2.Normalize(mean, std)`.
class Normalize {
 public:
  /// Takes one value of `mean` and `std` per channel.
  /// @throw c10::Error if there is no channel, if `mean` and `std` have different lengths, or if a
  /// value of `std` is 0.
  Normalize(std::vector<double> mean, std::vector<double> std);

  /// Returns the normalized images in their own floating-point type.
  /// @throw c10::Error if `images` is undefined, not `(N, C, H, W)` or `(C, H, W)`, not of a
  /// floating-point type, or has a different number of channels than `mean`.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::vector<double> mean_;
  std::vector<double> std_;
};

/// Resizes images to one size, with bilinear interpolation and antialiasing.
/// Python: `torchvision.transforms.v2.Resize([height, width])`.
class Resize {
 public:
  /// Takes height and width in pixels.
  /// @throw c10::Error if height or width is below 1.
  explicit Resize(std::array<int64_t, 2> size);

  /// Returns `(N, C, height, width)` in the type of the images; values of integer types are rounded
  /// to nearest. If the images already have that size, returns the same tensor. As in torchvision,
  /// uint8 is computed in integers on the CPU and in floats on a GPU, so results may differ by 1.
  /// @throw c10::Error if `images` is undefined, not `(N, C, H, W)` or `(C, H, W)`, has images
  /// without pixels, or has neither a floating-point nor an integer type.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::array<int64_t, 2> size_;
};

/// Crops each image to one size, at a random place for each image. Python:
/// `torchvision.transforms.v2.RandomCrop(size, padding)`, called for one image at a time: in a
/// batch it crops all images at the same place.
class RandomCrop {
 public:
  /// Takes height and width in pixels, and the number of zero pixels to pad first: one number for
  /// all sides, or left, top, right and bottom.
  /// @throw c10::Error if a value of `size` is below 1, or one of `padding` is below 0.
  explicit RandomCrop(std::array<int64_t, 2> size, torch::ExpandingArray<4> padding = 0);

  /// Returns `(N, C, height, width)`. Draws the N top edges, then the N left edges, with one
  /// `torch.randint` each.
  /// @throw c10::Error if `images` is undefined, not `(N, C, H, W)` or, with the padding, smaller
  /// than the size, or if `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  std::array<int64_t, 2> size_;
  torch::ExpandingArray<4> padding_;
};

/// Flips each image horizontally with a given probability. Python:
/// `torchvision.transforms.v2.RandomHorizontalFlip(p)`, called for one image at a time: in a batch
/// it flips all images or none. With the same seed both flip the same images.
class RandomHorizontalFlip {
 public:
  /// @throw c10::Error if `p` is not in 0 to 1.
  explicit RandomHorizontalFlip(double p = 0.5);

  /// Returns a new batch. Draws with one `torch.rand(N)`.
  /// @throw c10::Error if `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`, or if
  /// `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  double p_;
};

/// Crops images to one size at the center. Smaller images are padded with zeros first. Python:
/// `torchvision.transforms.v2.CenterCrop(size)`.
class CenterCrop {
 public:
  /// Takes height and width in pixels.
  /// @throw c10::Error if height or width is below 1.
  explicit CenterCrop(std::array<int64_t, 2> size);

  /// Returns `(N, C, height, width)`, a view of the images if they are not padded.
  /// @throw c10::Error if `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::array<int64_t, 2> size_;
};

/// Crops each image to a box of random area and aspect ratio and resizes it as `Resize` does, with
/// a box for each image. Python: `torchvision.transforms.v2.RandomResizedCrop(size, scale, ratio)`,
/// called for one image at a time. With the same seed both choose the same boxes.
class RandomResizedCrop {
 public:
  /// Takes height and width in pixels, the bounds of the box's part of the image's area, and those
  /// of its width divided by its height.
  /// @throw c10::Error if a value of `size` is below 1, or bounds are not above 0 and increasing.
  explicit RandomResizedCrop(std::array<int64_t, 2> size, std::array<double, 2> scale = {0.08, 1.0},
                             std::array<double, 2> ratio = {3. / 4, 4. / 3});

  /// Returns `(N, C, height, width)`. Draws area, ratio, top and left of an image up to ten times,
  /// until the box is within the image; else the box is at the center.
  /// @throw c10::Error as `Resize` does, or if `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  std::array<int64_t, 4> draw_box(int64_t height, int64_t width,
                                  const at::Generator& generator) const;

  std::array<int64_t, 2> size_;
  std::array<double, 2> scale_;
  std::array<double, 2> ratio_;
};

/// How far `ColorJitter` changes images; 0 leaves them as they are. Python also takes bounds.
struct ColorJitterOptions {
  double brightness = 0;  ///< the factor is from max(0, 1 - brightness) to 1 + brightness
  double contrast = 0;    ///< the same
  double saturation = 0;  ///< the same
  double hue = 0;         ///< the shift is from -hue to hue, in turns; at most 0.5
};

/// Changes brightness, contrast, saturation and hue of each image, in random order. Python:
/// `torchvision.transforms.v2.ColorJitter(brightness, contrast, saturation, hue)`, called for one
/// image at a time. With the same seed both make the same changes.
class ColorJitter {
 public:
  /// @throw c10::Error if an option is negative or not finite, or if `hue` is above 0.5.
  explicit ColorJitter(ColorJitterOptions options);

  /// Returns new images. Draws the order, then a factor for each option that is not 0.
  /// @throw c10::Error if `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`, has not
  /// 1 or 3 channels, or is neither uint8 nor of a floating-point type, or if `generator` is not a
  /// CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  ColorJitterOptions options_;
};

/// A function of a batch of images and a generator that returns a batch: one of the random classes
/// above, a `Compose` or a user's function.
template <class T>
concept RandomTransform =
    requires(const T& transform, const torch::Tensor& images, const at::Generator& generator) {
      { transform(images, generator) } -> std::convertible_to<torch::Tensor>;
    };

/// A RandomTransform, or a function of a batch of images alone that returns a batch.
template <class T>
concept Transform =
    RandomTransform<T> || requires(const T& transform, const torch::Tensor& images) {
      { transform(images) } -> std::convertible_to<torch::Tensor>;
    };

/// Calls transforms one after the other:
/// `Compose augment(RandomCrop({28, 28}, 2), RandomHorizontalFlip(), Normalize({0.5}, {0.2}));`
/// Python: `torchvision.transforms.v2.Compose`.
class Compose {
 public:
  /// Copies the transforms. Without any, the images are returned unchanged.
  template <Transform... Ts>
  explicit(sizeof...(Ts) != 1) Compose(Ts... transforms) {
    (push_back(std::move(transforms)), ...);
  }

  /// Appends a transform. Python: `compose.transforms.append(transform)`.
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

  /// Returns the result of the last transform. All random transforms share `generator`, which is
  /// required if there is one.
  /// @throw c10::Error under the same conditions as the transforms.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator = {}) const;

 private:
  using Step = std::function<torch::Tensor(const torch::Tensor&, const at::Generator&)>;
  std::vector<Step> transforms_ = {};
};

}  // namespace sconce::vision::transforms
