#include "sconce/data/transforms.hpp"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "detail/to_device.hpp"

namespace sconce::data {
namespace {

void check_images(const torch::Tensor& images, const char* name) {
  TORCH_CHECK(images.defined(), name, ": expected images, got an undefined tensor");
  TORCH_CHECK(images.dim() == 4, name, ": expected images of shape (N, C, H, W), got shape ",
              images.sizes());
}

void check_generator(const at::Generator& generator, const char* name) {
  TORCH_CHECK(generator.defined(), name, ": expected a CPU generator, got an undefined one");
  TORCH_CHECK(generator.device().is_cpu(), name, ": expected a CPU generator, got one on ",
              generator.device());
}

void check_size(const std::array<int64_t, 2>& size, const char* name) {
  TORCH_CHECK(size[0] >= 1 && size[1] >= 1, name,
              ": expected a height and width of 1 or more, got ", size[0], " and ", size[1]);
}

// Returns one value per channel, in a shape that broadcasts over the images.
at::Tensor per_channel(const std::vector<double>& values, const torch::Tensor& images) {
  const auto on_host = at::tensor(values, at::kDouble).to(images.scalar_type()).reshape({-1, 1, 1});
  return to_device(on_host, images.device());
}

}  // namespace

Normalize::Normalize(std::vector<double> mean, std::vector<double> std)
    : mean_(std::move(mean)), std_(std::move(std)) {
  TORCH_CHECK(!mean_.empty() && mean_.size() == std_.size(),
              "sconce::data::Normalize: expected as many values of mean as of std, and one or ",
              "more, got ", mean_.size(), " and ", std_.size());
  TORCH_CHECK(std::find(std_.begin(), std_.end(), 0.) == std_.end(),
              "sconce::data::Normalize: expected no std of 0, got ", std_);
}

torch::Tensor Normalize::operator()(const torch::Tensor& images) const {
  check_images(images, "sconce::data::Normalize");
  TORCH_CHECK(images.is_floating_point(), "sconce::data::Normalize: expected images of a floating ",
              "type, got ", images.scalar_type());
  TORCH_CHECK(images.size(1) == static_cast<int64_t>(mean_.size()),
              "sconce::data::Normalize: expected images of ", mean_.size(),
              " channels, as mean has values, got ", images.size(1));
  return images.sub(per_channel(mean_, images)).div_(per_channel(std_, images));
}

Resize::Resize(std::array<int64_t, 2> size) : size_(size) {
  check_size(size_, "sconce::data::Resize");
}

torch::Tensor Resize::operator()(const torch::Tensor& images) const {
  check_images(images, "sconce::data::Resize");
  const auto type = images.scalar_type();
  const bool is_integer = at::isIntegralType(type, /*includeBool=*/false);
  TORCH_CHECK(is_integer || images.is_floating_point(), "sconce::data::Resize: expected images of ",
              "a floating or an integer type, got ", type);
  TORCH_CHECK(images.size(1) > 0 && images.size(2) > 0 && images.size(3) > 0,
              "sconce::data::Resize: expected images of one pixel or more, got shape ",
              images.sizes());
  if (images.sizes().slice(2).equals(size_)) return images;
  // The kernel for uint8 does not accept an empty batch.
  if (images.size(0) == 0) return images.new_empty({0, images.size(1), size_[0], size_[1]});
  const bool has_kernel =
      type == at::kFloat || type == at::kDouble || (type == at::kByte && images.is_cpu());
  auto scaled = at::_upsample_bilinear2d_aa(has_kernel ? images : images.to(at::kFloat), size_,
                                            /*align_corners=*/false);
  if (has_kernel) return scaled;
  return (is_integer ? scaled.round() : scaled).to(type);
}

RandomCrop::RandomCrop(std::array<int64_t, 2> size, torch::ExpandingArray<4> padding)
    : size_(size), padding_(padding) {
  check_size(size_, "sconce::data::RandomCrop");
  TORCH_CHECK(std::all_of(padding_->begin(), padding_->end(), [](int64_t p) { return p >= 0; }),
              "sconce::data::RandomCrop: expected a padding of 0 or more, got ",
              at::IntArrayRef(*padding_));
}

torch::Tensor RandomCrop::operator()(const torch::Tensor& images,
                                     const at::Generator& generator) const {
  check_images(images, "sconce::data::RandomCrop");
  check_generator(generator, "sconce::data::RandomCrop");
  const auto [left, top, right, bottom] = *padding_;
  const auto [height, width] = size_;
  const int64_t rows = images.size(2) + top + bottom - height + 1;
  const int64_t columns = images.size(3) + left + right - width + 1;
  TORCH_CHECK(rows >= 1 && columns >= 1, "sconce::data::RandomCrop: expected images of ", height,
              " x ", width, " pixels or more with the padding, got ", rows + height - 1, " x ",
              columns + width - 1);
  const int64_t count = images.size(0);
  const int64_t channels = images.size(1);
  const auto tops = at::randint(rows, {count}, generator, at::kLong);
  const auto lefts = at::randint(columns, {count}, generator, at::kLong);
  if (count * channels == 0) return images.new_empty({count, channels, height, width});
  const bool is_padded = std::any_of(padding_->begin(), padding_->end(), [](auto p) { return p; });
  const auto padded =
      (is_padded ? at::constant_pad_nd(images, {left, right, top, bottom}) : images).contiguous();
  // A view of all crops, one beginning at each pixel; each image selects one of them. Its rows are
  // copied whole. at::index copies pixel by pixel and took up to ten times as long.
  const int64_t row = padded.size(3);
  const int64_t plane = padded.size(2) * row;
  const int64_t last = (channels - 1) * plane + (height - 1) * row + width - 1;
  const auto crops =
      padded.as_strided({padded.numel() - last, channels, height, width}, {1, plane, row, 1});
  const auto first_pixels = at::arange(0, padded.numel(), channels * plane, at::kLong);
  const auto begins = first_pixels.add(tops, row).add(lefts);
  return crops.index_select(0, to_device(begins, images.device()));
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  TORCH_CHECK(p >= 0 && p <= 1, "sconce::data::RandomHorizontalFlip: expected p in 0 to 1, got ",
              p);
}

torch::Tensor RandomHorizontalFlip::operator()(const torch::Tensor& images,
                                               const at::Generator& generator) const {
  check_images(images, "sconce::data::RandomHorizontalFlip");
  check_generator(generator, "sconce::data::RandomHorizontalFlip");
  const auto draws = at::rand({images.size(0), 1, 1, 1}, generator, at::kFloat);
  return at::where(to_device(draws.lt(p_), images.device()), images.flip(3), images);
}

torch::Tensor Compose::operator()(const torch::Tensor& images,
                                  const at::Generator& generator) const {
  torch::Tensor result = images;
  for (const auto& transform : transforms_) result = transform(result, generator);
  return result;
}

}  // namespace sconce::data
