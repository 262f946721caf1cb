#include "sconce/vision/transforms.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "to_device.hpp"

namespace sconce::vision::transforms {
namespace {

// Applies `work` to a batch of images. A single image is treated as a batch of one.
template <class Work>
torch::Tensor apply_to_batch(const torch::Tensor& images, const std::string& name,
                             const Work& work) {
  TORCH_CHECK(images.defined(), name, ": expected images, got an undefined tensor");
  TORCH_CHECK(images.dim() == 4 || images.dim() == 3, name,
              ": expected images of shape (N, C, H, W) or (C, H, W), got shape ", images.sizes());
  return images.dim() == 4 ? work(images) : work(images.unsqueeze(0)).squeeze(0);
}

void check_generator(const at::Generator& generator, const char* name) {
  TORCH_CHECK(generator.defined(), name, ": expected a CPU generator, got an undefined one");
  TORCH_CHECK(generator.device().is_cpu(), name, ": expected a CPU generator, got a generator on ",
              generator.device());
}

void check_size(const std::array<int64_t, 2>& size, const char* name) {
  TORCH_CHECK(size[0] >= 1 && size[1] >= 1, name,
              ": expected height and width to be at least 1, got ", size[0], " and ", size[1]);
}

// Returns one value per channel, in a shape that broadcasts over the images.
at::Tensor per_channel(const std::vector<double>& values, const torch::Tensor& images) {
  const auto on_host = at::tensor(values, at::kDouble).to(images.scalar_type()).reshape({-1, 1, 1});
  return to_device(on_host, images.device());
}

double draw_between(double low, double high, const at::Generator& generator) {
  return at::empty({1}, at::kFloat).uniform_(low, high, generator).item<float>();
}

// Like torchvision's functions with the same names, the functions below accept a single image
// `(C, H, W)`. The results of these functions match torchvision's results bit for bit.

at::Tensor blend(const at::Tensor& image, const at::Tensor& other, double ratio) {
  const double most = image.is_floating_point() ? 1 : 255;
  return image.mul(ratio).add_(other, 1 - ratio).clamp_(0, most).to(image.scalar_type());
}

at::Tensor rgb_to_grayscale(const at::Tensor& image) {
  const auto gray = image[0].mul(0.2989).add_(image[1], 0.587).add_(image[2], 0.114).unsqueeze(0);
  return image.is_floating_point() ? gray : gray.floor();
}

at::Tensor adjust_brightness(const at::Tensor& image, double factor) {
  const double most = image.is_floating_point() ? 1 : 255;
  return image.mul(factor).clamp_(0, most).to(image.scalar_type());
}

at::Tensor adjust_contrast(const at::Tensor& image, double factor) {
  const auto gray = image.size(0) == 3          ? rgb_to_grayscale(image)
                    : image.is_floating_point() ? image
                                                : image.to(at::kFloat);
  return blend(image, gray.mean({0, 1, 2}, /*keepdim=*/true), factor);
}

at::Tensor adjust_saturation(const at::Tensor& image, double factor) {
  return image.size(0) == 1 ? image : blend(image, rgb_to_grayscale(image), factor);
}

// Returns the hue, saturation, and value of an RGB image, from 0 to 1, each with shape `(H, W)`.
std::array<at::Tensor, 3> rgb_to_hsv(const at::Tensor& rgb) {
  const auto [low, high] = rgb.aminmax(0);
  const auto is_gray = high.eq(low);
  const auto range = high - low;
  const auto below = (high - rgb).div(range.masked_fill(is_gray, 1));  // for each color
  const auto by_red = below[2] - below[1];
  const auto by_green = below[0] + 2 - below[2];
  const auto by_blue = below[1] + 4 - below[0];
  const auto sixths =
      at::where(high.eq(rgb[0]), by_red, at::where(high.eq(rgb[1]), by_green, by_blue));
  return {sixths.mul(1. / 6).add_(1).fmod_(1), range / high.masked_fill(is_gray, 1), high};
}

at::Tensor hsv_to_rgb(const at::Tensor& hue, const at::Tensor& saturation,
                      const at::Tensor& value) {
  const auto sixths = hue.mul(6);
  const auto sector = sixths.floor();
  const auto part = saturation * (sixths - sector);
  const auto rest = 1 - saturation;
  const auto falling = (1 - part).mul_(value).clamp_(0, 1);
  const auto rising = (part + rest).mul_(value).clamp_(0, 1);
  const auto lowest = rest.mul(value).clamp_(0, 1);
  // For each color channel, selects one of the four computed values in each of the six hue sectors.
  const auto choices =
      at::tensor({0, 2, 1, 1, 3, 0, 3, 0, 0, 2, 1, 1, 1, 1, 3, 0, 0, 2}, at::kLong);
  const auto chosen = to_device(choices.view({3, 6}), hue.device())
                          .index_select(1, sector.to(at::kLong).remainder(6).flatten())
                          .view({3, hue.size(0), hue.size(1)});
  return at::stack({value, lowest, falling, rising}).gather(0, chosen);
}

at::Tensor adjust_hue(const at::Tensor& image, double shift) {
  if (image.size(0) == 1 || image.numel() == 0) return image;
  const bool is_byte = image.scalar_type() == at::kByte;
  const auto floats = image.to(at::kFloat);
  const auto [hue, saturation, value] = rgb_to_hsv(is_byte ? floats * (1. / 255) : floats);
  const auto rgb = hsv_to_rgb(hue.add(shift).remainder(1), saturation, value);
  // Scaling by slightly less than 256 makes all integers from 0 to 255 equally likely.
  return (is_byte ? rgb.mul(255 + 1.0 - 1e-3) : rgb).to(image.scalar_type());
}

}  // namespace

Normalize::Normalize(std::vector<double> mean, std::vector<double> std)
    : mean_(std::move(mean)), std_(std::move(std)) {
  TORCH_CHECK(!mean_.empty() && mean_.size() == std_.size(),
              "sconce::vision::transforms::Normalize: expected mean and std to contain the same "
              "nonzero number of values, got ",
              mean_.size(), " and ", std_.size());
  TORCH_CHECK(std::find(std_.begin(), std_.end(), 0.) == std_.end(),
              "sconce::vision::transforms::Normalize: expected nonzero std values, got ", std_);
}

torch::Tensor Normalize::operator()(const torch::Tensor& given) const {
  return apply_to_batch(
      given, "sconce::vision::transforms::Normalize",
      [&](const torch::Tensor& images) -> torch::Tensor {
        TORCH_CHECK(
            images.is_floating_point(),
            "sconce::vision::transforms::Normalize: expected images of a floating-point type, got ",
            images.scalar_type());
        TORCH_CHECK(images.size(1) == static_cast<int64_t>(mean_.size()),
                    "sconce::vision::transforms::Normalize: expected images of ", mean_.size(),
                    " channels (the number of values in mean), got ", images.size(1));
        return images.sub(per_channel(mean_, images)).div_(per_channel(std_, images));
      });
}

Resize::Resize(std::array<int64_t, 2> size) : size_(size) {
  check_size(size_, "sconce::vision::transforms::Resize");
}

torch::Tensor Resize::operator()(const torch::Tensor& given) const {
  return apply_to_batch(
      given, "sconce::vision::transforms::Resize",
      [&](const torch::Tensor& images) -> torch::Tensor {
        const auto type = images.scalar_type();
        const bool is_integer = at::isIntegralType(type, /*includeBool=*/false);
        TORCH_CHECK(is_integer || images.is_floating_point(),
                    "sconce::vision::transforms::Resize: expected images of a floating-point or "
                    "integer type, got ",
                    type);
        TORCH_CHECK(images.size(1) > 0 && images.size(2) > 0 && images.size(3) > 0,
                    "sconce::vision::transforms::Resize: expected images with at least one pixel, "
                    "got shape ",
                    images.sizes());
        if (images.sizes().slice(2).equals(size_)) return images;
        // The uint8 kernel does not support empty batches.
        if (images.size(0) == 0) return images.new_empty({0, images.size(1), size_[0], size_[1]});
        const bool has_kernel =
            type == at::kFloat || type == at::kDouble || (type == at::kByte && images.is_cpu());
        auto scaled =
            at::_upsample_bilinear2d_aa(has_kernel ? images : images.to(at::kFloat), size_,
                                        /*align_corners=*/false);
        if (has_kernel) return scaled;
        return (is_integer ? scaled.round() : scaled).to(type);
      });
}

RandomCrop::RandomCrop(std::array<int64_t, 2> size, torch::ExpandingArray<4> padding)
    : size_(size), padding_(padding) {
  check_size(size_, "sconce::vision::transforms::RandomCrop");
  TORCH_CHECK(std::all_of(padding_->begin(), padding_->end(), [](int64_t p) { return p >= 0; }),
              "sconce::vision::transforms::RandomCrop: expected padding to be non-negative, got ",
              at::IntArrayRef(*padding_));
}

torch::Tensor RandomCrop::operator()(const torch::Tensor& given,
                                     const at::Generator& generator) const {
  return apply_to_batch(
      given, "sconce::vision::transforms::RandomCrop",
      [&](const torch::Tensor& images) -> torch::Tensor {
        check_generator(generator, "sconce::vision::transforms::RandomCrop");
        const auto [left, top, right, bottom] = *padding_;
        const auto [height, width] = size_;
        const int64_t rows = images.size(2) + top + bottom - height + 1;
        const int64_t columns = images.size(3) + left + right - width + 1;
        TORCH_CHECK(rows >= 1 && columns >= 1,
                    "sconce::vision::transforms::RandomCrop: expected images of at least ", height,
                    " x ", width, " pixels including padding, got ", rows + height - 1, " x ",
                    columns + width - 1);
        const int64_t count = images.size(0);
        const int64_t channels = images.size(1);
        const auto tops = at::randint(rows, {count}, generator, at::kLong);
        const auto lefts = at::randint(columns, {count}, generator, at::kLong);
        if (count * channels == 0) return images.new_empty({count, channels, height, width});
        const bool is_padded =
            std::any_of(padding_->begin(), padding_->end(), [](auto p) { return p; });
        const auto padded =
            (is_padded ? at::constant_pad_nd(images, {left, right, top, bottom}) : images)
                .contiguous();
        // Creates a view of all possible crops, one per starting pixel, and selects one crop for
        // each image. Selecting crops copies whole rows at once, whereas at::index copies one pixel
        // at a time and took up to ten times as long.
        const int64_t row = padded.size(3);
        const int64_t plane = padded.size(2) * row;
        const int64_t last = (channels - 1) * plane + (height - 1) * row + width - 1;
        const auto crops =
            padded.as_strided({padded.numel() - last, channels, height, width}, {1, plane, row, 1});
        const auto first_pixels = at::arange(0, padded.numel(), channels * plane, at::kLong);
        const auto begins = first_pixels.add(tops, row).add(lefts);
        return crops.index_select(0, to_device(begins, images.device()));
      });
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  TORCH_CHECK(
      p >= 0 && p <= 1,
      "sconce::vision::transforms::RandomHorizontalFlip: expected p to be from 0 to 1, got ", p);
}

torch::Tensor RandomHorizontalFlip::operator()(const torch::Tensor& given,
                                               const at::Generator& generator) const {
  return apply_to_batch(
      given, "sconce::vision::transforms::RandomHorizontalFlip",
      [&](const torch::Tensor& images) -> torch::Tensor {
        check_generator(generator, "sconce::vision::transforms::RandomHorizontalFlip");
        const auto draws = at::rand({images.size(0), 1, 1, 1}, generator, at::kFloat);
        return at::where(to_device(draws.lt(p_), images.device()), images.flip(3), images);
      });
}

CenterCrop::CenterCrop(std::array<int64_t, 2> size) : size_(size) {
  check_size(size_, "sconce::vision::transforms::CenterCrop");
}

torch::Tensor CenterCrop::operator()(const torch::Tensor& given) const {
  return apply_to_batch(
      given, "sconce::vision::transforms::CenterCrop", [&](const torch::Tensor& images) {
        const auto [height, width] = size_;
        const int64_t missing_rows = std::max<int64_t>(height - images.size(2), 0);
        const int64_t missing_columns = std::max<int64_t>(width - images.size(3), 0);
        const bool is_padded = missing_rows + missing_columns > 0;
        const auto padded =
            is_padded ? at::constant_pad_nd(images, {missing_columns / 2, (missing_columns + 1) / 2,
                                                     missing_rows / 2, (missing_rows + 1) / 2})
                      : images;
        // Rounds halfway cases to even, as in Python.
        const auto start = [](int64_t all, int64_t part) {
          return std::lrint(static_cast<double>(all - part) / 2);
        };
        return padded.narrow(2, start(padded.size(2), height), height)
            .narrow(3, start(padded.size(3), width), width);
      });
}

RandomResizedCrop::RandomResizedCrop(std::array<int64_t, 2> size, std::array<double, 2> scale,
                                     std::array<double, 2> ratio)
    : size_(size), scale_(scale), ratio_(ratio) {
  constexpr auto name = "sconce::vision::transforms::RandomResizedCrop";
  check_size(size_, name);
  const auto check_bounds = [&](const std::array<double, 2>& bounds, const char* what) {
    TORCH_CHECK(bounds[0] > 0 && bounds[0] <= bounds[1] && std::isfinite(bounds[1]), name,
                ": expected increasing ", what, " bounds above 0, got ", bounds[0], " and ",
                bounds[1]);
  };
  check_bounds(scale_, "scale");
  check_bounds(ratio_, "ratio");
}

// Returns the top, left, height, and width of a crop.
std::array<int64_t, 4> RandomResizedCrop::draw_box(int64_t height, int64_t width,
                                                   const at::Generator& generator) const {
  const auto log = [](double value) { return std::log(static_cast<float>(value)); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area =
        static_cast<double>(height * width) * draw_between(scale_[0], scale_[1], generator);
    const double log_ratio = draw_between(log(ratio_[0]), log(ratio_[1]), generator);
    const double ratio = at::exp(at::tensor({log_ratio}, at::kFloat)).item<float>();
    const int64_t columns = std::lrint(std::sqrt(area * ratio));
    const int64_t rows = std::lrint(std::sqrt(area / ratio));
    if (columns < 1 || columns > width || rows < 1 || rows > height) continue;
    const auto draw = [&](int64_t places) {
      return at::randint(places, {1}, generator, at::kLong).item<int64_t>();
    };
    const int64_t top = draw(height - rows + 1);
    return {top, draw(width - columns + 1), rows, columns};
  }
  const double given = static_cast<double>(width) / static_cast<double>(height);
  int64_t rows = height;
  int64_t columns = width;
  if (given < ratio_[0]) rows = std::lrint(static_cast<double>(width) / ratio_[0]);
  if (given > ratio_[1]) columns = std::lrint(static_cast<double>(height) * ratio_[1]);
  return {(height - rows) / 2, (width - columns) / 2, rows, columns};
}

torch::Tensor RandomResizedCrop::operator()(const torch::Tensor& given,
                                            const at::Generator& generator) const {
  constexpr auto name = "sconce::vision::transforms::RandomResizedCrop";
  check_generator(generator, name);
  return apply_to_batch(given, name, [&](const torch::Tensor& images) -> torch::Tensor {
    const Resize resize(size_);
    if (images.size(0) == 0) return resize(images);
    TORCH_CHECK(images.size(2) > 0 && images.size(3) > 0, name,
                ": expected images with at least one pixel, got shape ", images.sizes());
    std::vector<at::Tensor> crops;
    for (int64_t i = 0; i < images.size(0); ++i) {
      const auto [top, left, rows, columns] = draw_box(images.size(2), images.size(3), generator);
      crops.push_back(resize(images[i].narrow(1, top, rows).narrow(2, left, columns)));
    }
    return at::stack(crops);
  });
}

ColorJitter::ColorJitter(ColorJitterOptions options) : options_(options) {
  const auto check = [](double value, const char* what, double most) {
    TORCH_CHECK(value >= 0 && value <= most && std::isfinite(value),
                "sconce::vision::transforms::ColorJitter: expected a ", what, " of 0 to ", most,
                ", got ", value);
  };
  constexpr double any = std::numeric_limits<double>::infinity();
  check(options_.brightness, "brightness", any);
  check(options_.contrast, "contrast", any);
  check(options_.saturation, "saturation", any);
  check(options_.hue, "hue", 0.5);
}

torch::Tensor ColorJitter::operator()(const torch::Tensor& given,
                                      const at::Generator& generator) const {
  constexpr auto name = "sconce::vision::transforms::ColorJitter";
  check_generator(generator, name);
  // Factors are centered at 1, and shifts are centered at 0.
  const auto draw = [&](double range, double center) {
    if (range == 0) return center;
    return draw_between(center == 0 ? -range : std::max(1 - range, 0.), center + range, generator);
  };
  return apply_to_batch(given, name, [&](const torch::Tensor& images) {
    TORCH_CHECK(images.size(1) == 1 || images.size(1) == 3, name,
                ": expected images of 1 or 3 channels, got ", images.size(1));
    TORCH_CHECK(images.scalar_type() == at::kByte || images.is_floating_point(), name,
                ": expected images of uint8 or a floating-point type, got ", images.scalar_type());
    const auto result = images.clone();
    for (int64_t i = 0; i < images.size(0); ++i) {
      const auto order = at::randperm(4, generator, at::kLong);
      const double brightness = draw(options_.brightness, 1);
      const double contrast = draw(options_.contrast, 1);
      const double saturation = draw(options_.saturation, 1);
      const double hue = draw(options_.hue, 0);
      at::Tensor image = images[i];
      for (int64_t step = 0; step < 4; ++step) {
        const auto what = order[step].item<int64_t>();
        if (what == 0 && options_.brightness > 0) image = adjust_brightness(image, brightness);
        if (what == 1 && options_.contrast > 0) image = adjust_contrast(image, contrast);
        if (what == 2 && options_.saturation > 0) image = adjust_saturation(image, saturation);
        if (what == 3 && options_.hue > 0) image = adjust_hue(image, hue);
      }
      result[i].copy_(image);
    }
    return result;
  });
}

torch::Tensor Compose::operator()(const torch::Tensor& images,
                                  const at::Generator& generator) const {
  torch::Tensor result = images;
  for (const auto& transform : transforms_) result = transform(result, generator);
  return result;
}

}  // namespace sconce::vision::transforms
