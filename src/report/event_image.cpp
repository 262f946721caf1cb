#include "report/event_image.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace sconce::utils::tensorboard {

namespace {

constexpr int64_t grid_columns = 8;
constexpr int64_t max_pixels = int64_t{1} << 28;  // TensorBoard reads records smaller than 2 GiB

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

// Arranges gray or RGB images (N, C, H, W) in a single image (H, W, 3).
at::Tensor grid(const at::Tensor& images) {
  const int64_t height = images.size(2);
  const int64_t width = images.size(3);
  const int64_t columns = std::min(images.size(0), grid_columns);
  const int64_t rows = (images.size(0) + columns - 1) / columns;
  const at::Tensor cells = at::zeros({rows * columns, 3, height, width}, images.options());
  cells.slice(0, 0, images.size(0)).copy_(images);
  return cells.view({rows, columns, 3, height, width})
      .permute({0, 3, 1, 4, 2})
      .reshape({rows * height, columns * width, 3});
}

// Truncates values, like Python.
at::Tensor to_bytes(const at::Tensor& image) {
  if (image.scalar_type() == at::kByte) return image;
  return image.to(at::kFloat).mul(255).clamp(0, 255).nan_to_num(0).to(at::kByte);
}

}  // namespace

at::Tensor values_on_cpu(const std::string& caller, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined() && tensor.numel() > 0, caller,
              ": expected a tensor with at least one value, got ",
              tensor.defined() ? c10::str("shape ", tensor.sizes()) : "an undefined one");
  TORCH_CHECK(tensor.layout() == at::kStrided && !tensor.is_meta() && !tensor.is_quantized() &&
                  !tensor.is_complex(),
              caller, ": expected a dense tensor of real numbers, got ", tensor.toString());
  return tensor.detach().cpu();
}

at::Tensor image_pixels(const std::string& caller, const at::Tensor& image,
                        const std::string& dataformats) {
  const std::string letters = in_capitals(dataformats);
  const std::string order = letters.size() == 4 ? "NCHW" : letters.size() == 3 ? "HWC" : "HW";
  TORCH_CHECK(std::is_permutation(letters.begin(), letters.end(), order.begin(), order.end()),
              caller, ": expected dataformats to be a permutation of CHW, HW, or NCHW, got \"",
              dataformats, '"');
  TORCH_CHECK(image.defined() && image.dim() == std::ssize(letters), caller,
              ": expected a tensor of ", letters.size(), " dimensions (dataformats is \"",
              dataformats, "\"), got ",
              image.defined() ? c10::str("shape ", image.sizes()) : "an undefined one");
  const auto size_of = [&](char letter) {
    const auto place = letters.find(letter);
    return place == letters.npos ? 1 : image.size(static_cast<int64_t>(place));
  };
  const int64_t channels = size_of('C');
  TORCH_CHECK(order == "NCHW" ? channels == 1 || channels == 3 : channels >= 1 && channels <= 4,
              caller, ": expected ", order == "NCHW" ? "1 or 3" : "1 to 4", " channels, got ",
              channels, " in shape ", image.sizes(), " with dataformats \"", dataformats, '"');
  TORCH_CHECK(image.numel() / channels < max_pixels, caller, ": expected fewer than ", max_pixels,
              " pixels, got shape ", image.sizes());
  std::vector<int64_t> places;
  for (const char letter : order) places.push_back(static_cast<int64_t>(letters.find(letter)));
  at::Tensor pixels = values_on_cpu(caller, image).permute(places);
  if (order == "NCHW") pixels = grid(pixels);
  if (order == "HW") pixels = pixels.unsqueeze(2);
  if (pixels.size(2) == 1) pixels = pixels.expand({-1, -1, 3});
  return to_bytes(pixels).contiguous();
}

}  // namespace sconce::utils::tensorboard
