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

/// Transforms for a batch of images of shape `(N, C, H, W)` or a single image of shape `(C, H, W)`,
/// with the same names and arguments as in `torchvision.transforms.v2`. Transforms run on the
/// images' device, do not modify their input, and do not read values from a GPU. Several threads
/// may share a transform, because transforms are stateless.
///
/// Random choices come from the CPU generator passed to the call, so the same seed produces the
/// same choices on every device. No other generator is used.
namespace sconce::vision::transforms {

/// Normalizes each channel: (image - mean) / std.
/// Python: `torchvision.transforms.v2.Normalize(mean, std)`.
class Normalize {
 public:
  /// Constructs a transform. `mean` and `std` contain one value per channel.
  /// @throw c10::Error if `mean` and `std` are empty or differ in length, or if `std` contains 0.
  Normalize(std::vector<double> mean, std::vector<double> std);

  /// Returns the normalized images in the input's floating-point type.
  /// @throw c10::Error if:
  /// - `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`;
  /// - `images` has a non-floating-point type or a different number of channels than `mean`.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::vector<double> mean_;
  std::vector<double> std_;
};

/// Resizes images to a given size, with bilinear interpolation and antialiasing.
/// Python: `torchvision.transforms.v2.Resize([height, width])`.
class Resize {
 public:
  /// Constructs a transform that resizes images to `size`, the height and width in pixels.
  /// @throw c10::Error if height or width is below 1.
  explicit Resize(std::array<int64_t, 2> size);

  /// Returns the resized images, which have shape `(N, C, height, width)` and the input's type.
  /// Integer results are rounded to the nearest value. If the images already have the given size,
  /// returns the same tensor. As in torchvision, uint8 images are resized with integer arithmetic
  /// on the CPU and with floating-point arithmetic on a GPU, so results may differ by 1.
  /// @throw c10::Error if:
  /// - `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`;
  /// - the images have no pixels, or their type is neither a floating-point nor an integer type.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::array<int64_t, 2> size_;
};

/// Crops each image to a given size at an independently chosen random location.
/// Python: `torchvision.transforms.v2.RandomCrop(size, padding)`, applied to one image at a time.
/// For a batch, torchvision crops all images at the same location.
class RandomCrop {
 public:
  /// Constructs a transform that pads images with zeros and then crops them to `size`, the height
  /// and width in pixels. `padding` contains either a single value for all sides or the left, top,
  /// right, and bottom values, in pixels.
  /// @throw c10::Error if a value in `size` is below 1, or if a value in `padding` is below 0.
  explicit RandomCrop(std::array<int64_t, 2> size, torch::ExpandingArray<4> padding = 0);

  /// Returns the cropped images, of shape `(N, C, height, width)`. Draws all N top edges with one
  /// `torch.randint` call, then all N left edges with a second call.
  /// @throw c10::Error if:
  /// - `images` is undefined, not `(N, C, H, W)`, or smaller than `size` after padding;
  /// - `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  std::array<int64_t, 2> size_;
  torch::ExpandingArray<4> padding_;
};

/// Flips each image horizontally with a given probability.
/// Python: `torchvision.transforms.v2.RandomHorizontalFlip(p)`, applied to one image at a time. For
/// a batch, torchvision flips either all images or none. With the same seed, sconce and torchvision
/// flip the same images.
class RandomHorizontalFlip {
 public:
  /// Constructs a transform that flips each image with probability `p`.
  /// @throw c10::Error if `p` is not between 0 and 1.
  explicit RandomHorizontalFlip(double p = 0.5);

  /// Returns a new batch. Draws the random numbers with a single call to `torch.rand(N)`.
  /// @throw c10::Error if:
  /// - `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`;
  /// - `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  double p_;
};

/// Crops each image to a given size at its center. Smaller images are first padded with zeros.
/// Python: `torchvision.transforms.v2.CenterCrop(size)`.
class CenterCrop {
 public:
  /// Constructs a transform that crops images to `size`, the height and width in pixels.
  /// @throw c10::Error if height or width is below 1.
  explicit CenterCrop(std::array<int64_t, 2> size);

  /// Returns the cropped images, of shape `(N, C, height, width)`. The result is a view of the
  /// input unless padding was necessary.
  /// @throw c10::Error if `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`.
  torch::Tensor operator()(const torch::Tensor& images) const;

 private:
  std::array<int64_t, 2> size_;
};

/// Crops each image to a box with a random area and aspect ratio, then resizes the box like
/// `Resize`. Boxes are chosen independently for each image.
/// Python: `torchvision.transforms.v2.RandomResizedCrop(size, scale, ratio)`, applied to one image
/// at a time. With the same seed, sconce and torchvision choose the same boxes.
class RandomResizedCrop {
 public:
  /// Constructs a transform that resizes boxes to `size`, the height and width in pixels. `scale`
  /// contains the lower and upper bounds of the box area as a fraction of the image area. `ratio`
  /// contains the lower and upper bounds of the aspect ratio (width divided by height).
  /// @throw c10::Error if a value in `size` is below 1, or if bounds are not positive and
  /// increasing.
  explicit RandomResizedCrop(std::array<int64_t, 2> size, std::array<double, 2> scale = {0.08, 1.0},
                             std::array<double, 2> ratio = {3. / 4, 4. / 3});

  /// Returns the resized images, of shape `(N, C, height, width)`. For each image, draws the area,
  /// ratio, top, and left up to ten times, until the box fits in the image. If no box fits, uses a
  /// centered box.
  /// @throw c10::Error in the same cases as `Resize`, or if `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  std::array<int64_t, 4> draw_box(int64_t height, int64_t width,
                                  const at::Generator& generator) const;

  std::array<int64_t, 2> size_;
  std::array<double, 2> scale_;
  std::array<double, 2> ratio_;
};

/// Options for `ColorJitter`. A value of 0 leaves images unchanged. Python also accepts lower and
/// upper bounds.
struct ColorJitterOptions {
  double brightness = 0;  ///< factor from max(0, 1 - brightness) to 1 + brightness
  double contrast = 0;    ///< same as for brightness
  double saturation = 0;  ///< same as for brightness
  double hue = 0;         ///< shift from -hue to hue, in full turns; at most 0.5
};

/// Randomly changes the brightness, contrast, saturation, and hue of each image, in random order.
/// Python: `torchvision.transforms.v2.ColorJitter(brightness, contrast, saturation, hue)`, applied
/// to one image at a time. With the same seed, sconce and torchvision apply the same changes.
class ColorJitter {
 public:
  /// Constructs a transform with the given options.
  /// @throw c10::Error if an option is negative or not finite, or if `hue` is above 0.5.
  explicit ColorJitter(ColorJitterOptions options);

  /// Returns new images. Draws the order of the changes, then a factor for each nonzero option.
  /// @throw c10::Error if:
  /// - `images` is undefined or neither `(N, C, H, W)` nor `(C, H, W)`;
  /// - `images` does not have 1 or 3 channels, or has neither type uint8 nor a floating-point type;
  /// - `generator` is not a CPU generator.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator) const;

 private:
  ColorJitterOptions options_;
};

/// Satisfied by functions that accept a batch of images and a generator and return a batch.
/// Examples include the random transforms above, `Compose`, and custom functions.
template <class T>
concept RandomTransform =
    requires(const T& transform, const torch::Tensor& images, const at::Generator& generator) {
      { transform(images, generator) } -> std::convertible_to<torch::Tensor>;
    };

/// Satisfied by a RandomTransform, or by a function that accepts a batch of images and returns a
/// batch.
template <class T>
concept Transform =
    RandomTransform<T> || requires(const T& transform, const torch::Tensor& images) {
      { transform(images) } -> std::convertible_to<torch::Tensor>;
    };

/// Applies transforms in sequence:
/// `Compose augment(RandomCrop({28, 28}, 2), RandomHorizontalFlip(), Normalize({0.5}, {0.2}));`
/// Python: `torchvision.transforms.v2.Compose`.
class Compose {
 public:
  /// Copies the transforms. If there are no transforms, images are returned unchanged.
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

  /// Applies all transforms and returns the result of the last transform. All random transforms
  /// share `generator`, which is required if any transform is random.
  /// @throw c10::Error in the same cases as the transforms.
  torch::Tensor operator()(const torch::Tensor& images, const at::Generator& generator = {}) const;

 private:
  using Step = std::function<torch::Tensor(const torch::Tensor&, const at::Generator&)>;
  std::vector<Step> transforms_ = {};
};

}  // namespace sconce::vision::transforms
