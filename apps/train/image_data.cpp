#include "image_data.hpp"

#include <torch/types.h>

#include <filesystem>

#include "sconce/data/idx.hpp"

namespace train {

namespace {

using std::filesystem::path;

path find_folder(const std::string& data) {
  if (data == "digits") return SCONCE_DIGITS_DIR;
  if (data != "fashion-mnist") return data;
  const path installed = "/usr/share/datasets/fashion-mnist";
  TORCH_CHECK(std::filesystem::is_directory(installed), "--data fashion-mnist: not found in ",
              installed.string(),
              "; get it by `apt install dataset-fashion-mnist`, or name the "
              "folder that holds its four files: --data DIR");
  return installed;
}

// MNIST is handed out gzipped; many unpack it.
path find_file(const path& folder, const std::string& name) {
  const path gzipped = folder / (name + ".gz");
  return std::filesystem::exists(gzipped) ? gzipped : folder / name;
}

sconce::data::Dataset read_part(const path& folder, const std::string& part) {
  const path images = find_file(folder, part + "-images-idx3-ubyte");
  const path labels = find_file(folder, part + "-labels-idx1-ubyte");
  sconce::data::Dataset read = sconce::data::read_idx(images, labels);
  TORCH_CHECK(read.data.dim() == 3 && read.data.numel() > 0, images.string(),
              ": expected images (N, H, W) with N of at least 1, found a shape of ",
              read.data.sizes());
  return {read.data.unsqueeze(1).to(torch::kFloat), read.target};
}

}  // namespace

ImageData load_images(const std::string& data) {
  const path folder = find_folder(data);
  ImageData images{.train = read_part(folder, "train"), .test = read_part(folder, "t10k")};
  images.classes = images.train.target.max().item<int64_t>() + 1;
  const int64_t highest = images.test.target.max().item<int64_t>();
  TORCH_CHECK(highest < images.classes, folder.string(),
              ": expected test labels below the training labels' ", images.classes, ", found ",
              highest);
  TORCH_CHECK(images.test.data.sizes().slice(1) == images.train.data.sizes().slice(1),
              folder.string(), ": expected test images of ", images.train.data.sizes().slice(1),
              " like the training images, found ", images.test.data.sizes().slice(1));
  // A constant image set has no deviation to divide by.
  const torch::Tensor mean = images.train.data.mean();
  const torch::Tensor deviation = images.train.data.std().clamp_min(1e-6);
  for (auto* part : {&images.train, &images.test}) part->data.sub_(mean).div_(deviation);
  return images;
}

}  // namespace train
