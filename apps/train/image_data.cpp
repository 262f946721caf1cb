#include "image_data.hpp"

#include <torch/types.h>

#include <filesystem>

#include "picture_folder.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/data/loader.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/transforms.hpp"

namespace train {

namespace {

using sconce::data::Dataset;
using sconce::distributed::ProcessGroup;
using std::filesystem::path;

constexpr int64_t test_batch_size = 1000;

// The digits are installed with the program, and lie among the sources of one that is not
// installed.
path find_digits() {
  const path program = std::filesystem::read_symlink("/proc/self/exe");
  const path installed = program.parent_path().parent_path() / "share/sconce/digits";
  return std::filesystem::is_directory(installed) ? installed : path(SCONCE_DIGITS_DIR);
}

path find_folder(const std::string& data) {
  if (data == "digits") return find_digits();
  if (data != "fashion-mnist") return data;
  const path installed = "/usr/share/datasets/fashion-mnist";
  TORCH_CHECK(std::filesystem::is_directory(installed), "--data fashion-mnist: not found in ",
              installed.string(),
              "; get it by `apt install dataset-fashion-mnist`, or name the "
              "folder that holds its four files: --data DIR");
  return installed;
}

// MNIST is distributed gzipped, and many people unpack it.
path find_file(const path& folder, const std::string& name) {
  const path gzipped = folder / (name + ".gz");
  return std::filesystem::exists(gzipped) ? gzipped : folder / name;
}

Dataset read_part(const path& folder, const std::string& part) {
  const path images = find_file(folder, part + "-images-idx3-ubyte");
  const path labels = find_file(folder, part + "-labels-idx1-ubyte");
  Dataset read = sconce::vision::read_idx(images, labels);
  TORCH_CHECK(read.data.dim() == 3 && read.data.numel() > 0, images.string(),
              ": expected images (N, H, W) with N of at least 1, found a shape of ",
              read.data.sizes());
  return {read.data.unsqueeze(1).to(torch::kFloat), read.target};
}

// Returns every world_size-th row, from the rank's on. Other ranks may have one row more.
Dataset rows_of_rank(const Dataset& all, const ProcessGroup& group) {
  const auto every = [&](const torch::Tensor& tensor) {
    return tensor.slice(0, group.rank(), tensor.size(0), group.world_size());
  };
  return {every(all.data), every(all.target)};
}

Dataset to_device(const Dataset& all, torch::Device device) {
  return {all.data.to(device), all.target.to(device)};
}

// The images are small, so they are copied to the device once and not batch by batch.
ImageData open_idx(const CommandLine& line, const ProcessGroup& group, const Images& known) {
  const path folder = find_folder(line.data);
  Dataset train = read_part(folder, "train");
  Dataset test = read_part(folder, "t10k");
  Images images{.shape = train.data.sizes().slice(1).vec(), .mean = known.mean, .std = known.std};
  const int64_t classes = train.target.max().item<int64_t>() + 1;
  const int64_t highest = test.target.max().item<int64_t>();
  TORCH_CHECK(highest < classes, folder.string(),
              ": expected test labels below the training labels' ", classes, ", found ", highest);
  TORCH_CHECK(test.data.sizes().slice(1) == images.shape, folder.string(),
              ": expected test images of ", train.data.sizes().slice(1),
              " like the training images, found ", test.data.sizes().slice(1));
  for (int64_t i = 0; i < classes; ++i) images.classes.push_back(std::to_string(i));
  if (images.mean.empty()) {
    images.mean = {train.data.mean().item<double>()};
    // The deviation of constant images is 0.
    images.std = {train.data.std().clamp_min(1e-6).item<double>()};
  }
  for (auto* part : {&train, &test}) part->data.sub_(images.mean[0]).div_(images.std[0]);

  const torch::Device device = line.torch_device(group);
  const int64_t train_size = train.data.size(0);
  const sconce::data::DistributedSampler sampler(train_size, group, {.seed = line.seed});
  return {.images = images,
          .train = sconce::data::Batches(to_device(train, device),
                                         {.batch_size = line.batch_size, .sampler = sampler}),
          .test = sconce::data::Batches(to_device(rows_of_rank(test, group), device),
                                        {.batch_size = test_batch_size}),
          .train_size = train_size,
          .test_size = test.data.size(0)};
}

// Applies `augment` to the bytes and then normalizes them with the training pictures' mean and
// deviation.
sconce::AnyBatches normalised(sconce::data::Loader<Pictures> loader, const Images& images,
                              const sconce::vision::transforms::Compose& augment, uint64_t seed) {
  const sconce::vision::transforms::Normalize normalize(images.mean, images.std);
  return sconce::data::TransformedBatches(
      std::move(loader),
      [augment, normalize](const Dataset& batch, const at::Generator& generator) {
        return Dataset{normalize(augment(batch.data, generator).to(torch::kFloat)), batch.target};
      },
      {.seed = seed});
}

// Shifts pictures at random by up to an eighth of their size, and mirrors half of them.
sconce::vision::transforms::Compose augmentation(const CommandLine& line) {
  sconce::vision::transforms::Compose augment;
  if (!line.augment) return augment;
  const int64_t size = line.image_size;
  augment.push_back(sconce::vision::transforms::RandomCrop({size, size}, size / 8));
  augment.push_back(sconce::vision::transforms::RandomHorizontalFlip());
  return augment;
}

ImageData open_pictures(const CommandLine& line, const ProcessGroup& group, const Images& known) {
  Images images{.shape = {line.grey ? 1 : 3, line.image_size, line.image_size},
                .mean = known.mean,
                .std = known.std};
  const auto folder = open_folder(line.data, images.shape);
  const auto good = line.skip_bad ? leave_out_bad(*folder, line.workers) : check_headers(*folder);
  const auto split = split_pictures(folder->targets(), good, line.test_fraction, line.seed);
  images.classes = folder->classes();
  if (images.mean.empty()) {
    measure_channels(images, Pictures(folder, split.train), line.seed, line.workers);
  }

  const auto train_size = static_cast<int64_t>(split.train.size());
  const auto test_size = static_cast<int64_t>(split.test.size());
  std::vector<int64_t> tests;
  for (int64_t i = group.rank(); i < test_size; i += group.world_size()) {
    tests.push_back(split.test[i]);
  }
  sconce::data::LoaderOptions options{.batch_size = line.batch_size, .num_workers = line.workers};
  const torch::Device device = line.torch_device(group);
  if (!device.is_cpu()) options.device = device;
  sconce::data::Loader test(Pictures(folder, tests), options);
  options.sampler = sconce::data::DistributedSampler(train_size, group, {.seed = line.seed});
  sconce::data::Loader train(Pictures(folder, split.train), options);
  const uint64_t seed = sconce::data::mix_seeds(line.seed, 0, group.rank());
  return {.images = images,
          .train = normalised(std::move(train), images, augmentation(line), seed),
          .test = normalised(std::move(test), images, sconce::vision::transforms::Compose(), 0),
          .train_size = train_size,
          .test_size = test_size,
          .left_out = folder->size() - static_cast<int64_t>(good.size())};
}

}  // namespace

bool is_picture_folder(const std::string& data) {
  return data != "digits" && data != "fashion-mnist" && !has_idx_files(data);
}

ImageData open_images(const CommandLine& line, const ProcessGroup& group, const Images& known) {
  if (is_picture_folder(line.data)) return open_pictures(line, group, known);
  return open_idx(line, group, known);
}

}  // namespace train
