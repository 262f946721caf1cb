#include "training_data.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "picture_folder.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/data/transformed_batches.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/transforms.hpp"

namespace train {

namespace {

using sconce::data::Dataset;
using sconce::distributed::ProcessGroup;
using std::filesystem::path;

constexpr int64_t test_batch_size = 1000;

path find_folder(const std::string& data) {
  if (data == "digits") return find_digits("/proc/self/exe", SCONCE_DIGITS_DIR);
  if (data != "fashion-mnist") return data;
  const path installed = "/usr/share/datasets/fashion-mnist";
  TORCH_CHECK(std::filesystem::is_directory(installed),
              "--data fashion-mnist: found no dataset in ", installed.string(),
              "; install it with `apt install dataset-fashion-mnist`, or specify the folder that "
              "contains its four files: --data DIR");
  return installed;
}

Dataset read_part(const path& folder, const std::string& part) {
  const path images = idx_file(folder, part, "images");
  const path labels = idx_file(folder, part, "labels");
  Dataset read = sconce::vision::read_idx(images, labels);
  TORCH_CHECK(read.data.dim() == 3 && read.data.numel() > 0, images.string(),
              ": expected images of shape (N, H, W) with N at least 1, found shape ",
              read.data.sizes());
  return {read.data.unsqueeze(1).to(torch::kFloat), read.target};
}

// Returns every `step`-th row, starting at `first`, on the device.
Dataset rows_on(torch::Device device, const Dataset& all, int64_t first = 0, int64_t step = 1) {
  const auto chosen = [&](const torch::Tensor& tensor) {
    return tensor.slice(0, first, tensor.size(0), step).to(device);
  };
  return {chosen(all.data), chosen(all.target)};
}

TrainingData open_idx(const CommandLine& line, const ProcessGroup& group, const Task& known) {
  const path folder = find_folder(line.data);
  TORCH_CHECK(is_named(line.data) || !has_picture_folders(folder), folder.string(),
              ": expected IDX files or folders of images, found both");
  Dataset train = read_part(folder, "train");
  Dataset test = read_part(folder, "t10k");
  Task task{.shape = train.data.sizes().slice(1).vec(), .mean = known.mean, .std = known.std};
  const int64_t classes = train.target.max().item<int64_t>() + 1;
  const int64_t highest = test.target.max().item<int64_t>();
  TORCH_CHECK(highest < classes, folder.string(), ": expected test labels below ", classes,
              ", the number of classes in the training data, found ", highest);
  TORCH_CHECK(test.data.sizes().slice(1) == task.shape, folder.string(),
              ": expected test images of shape ", train.data.sizes().slice(1),
              " (like the training images), found shape ", test.data.sizes().slice(1));
  for (int64_t i = 0; i < classes; ++i) task.classes.push_back(std::to_string(i));
  if (task.mean.empty()) {
    task.mean = {train.data.mean().item<double>()};
    // The standard deviation of constant images is 0.
    task.std = {train.data.std().clamp_min(1e-6).item<double>()};
  }
  for (auto* part : {&train, &test}) part->data.sub_(task.mean[0]).div_(task.std[0]);
  return in_memory(line, group, task, train, test);
}

// Applies `augment` to the bytes, and then normalizes the result with the mean and standard
// deviation of the training images.
sconce::AnyBatches normalised(sconce::data::DataLoader<Pictures> loader, const Task& task,
                              const sconce::vision::transforms::Compose& augment, uint64_t seed) {
  const sconce::vision::transforms::Normalize normalize(task.mean, task.std);
  return sconce::data::TransformedBatches(
      std::move(loader),
      [augment, normalize](const Dataset& batch, const at::Generator& generator) {
        return Dataset{normalize(augment(batch.data, generator).to(torch::kFloat)), batch.target};
      },
      {.seed = seed});
}

// Shifts images randomly by up to one eighth of their size, and mirrors half of the images.
sconce::vision::transforms::Compose augmentation(const CommandLine& line) {
  sconce::vision::transforms::Compose augment;
  if (!line.augment) return augment;
  const int64_t size = line.image_size;
  augment.push_back(sconce::vision::transforms::RandomCrop({size, size}, size / 8));
  augment.push_back(sconce::vision::transforms::RandomHorizontalFlip());
  return augment;
}

TrainingData open_pictures(const CommandLine& line, const ProcessGroup& group, const Task& known) {
  Task task{.shape = {line.gray ? 1 : 3, line.image_size, line.image_size},
            .mean = known.mean,
            .std = known.std};
  const auto folder = open_folder(line.data, task.shape, line.limits.image);
  const auto good = line.skip_bad ? leave_out_bad(*folder, line.workers, line.limits.image)
                                  : check_headers(*folder, line.limits.image);
  const auto split = split_examples(folder->targets(), good, line.test_fraction, line.seed);
  task.classes = folder->classes();
  if (task.mean.empty()) {
    measure_channels(task, Pictures(folder, split.train), line.seed, line.workers);
  }

  const auto train_size = static_cast<int64_t>(split.train.size());
  const auto test_size = static_cast<int64_t>(split.test.size());
  std::vector<int64_t> tests;
  for (int64_t i = group.rank(); i < test_size; i += group.world_size()) {
    tests.push_back(split.test[i]);
  }
  sconce::data::DataLoaderOptions options{.batch_size = line.batch_size,
                                          .num_workers = line.workers};
  const torch::Device device = line.torch_device(group);
  if (!device.is_cpu()) options.device = device;
  sconce::data::DataLoader test(Pictures(folder, tests), options);
  options.sampler = sconce::data::DistributedSampler(train_size, group, {.seed = line.seed});
  sconce::data::DataLoader train(Pictures(folder, split.train), options);
  const uint64_t seed = sconce::data::mix_seeds(line.seed, 0, group.rank());
  return {.task = task,
          .train = normalised(std::move(train), task, augmentation(line), seed),
          .test = normalised(std::move(test), task, sconce::vision::transforms::Compose(), 0),
          .train_size = train_size,
          .test_size = test_size,
          .left_out = folder->size() - static_cast<int64_t>(good.size())};
}

}  // namespace

path find_digits(const path& program, const path& sources) {
  std::error_code error;  // an error if /proc is missing, as in some containers
  const path link = std::filesystem::read_symlink(program, error);
  const path installed = link.parent_path().parent_path() / "share/sconce/digits";
  std::error_code ignored;
  if (!error && std::filesystem::is_directory(installed, ignored)) return installed;
  if (std::filesystem::is_directory(sources, ignored)) return sources;
  const std::string missing =
      error ? "but cannot determine this program's installation folder from " + program.string() +
                  ": " + error.message()
            : "found neither " + installed.string() + " nor " + sources.string();
  TORCH_CHECK(false, "--data digits: expected the folder with the digits dataset, ", missing,
              "; specify the folder that contains the four files: --data DIR");
}

bool is_named(const std::string& data) {
  return data == "digits" || data == "fashion-mnist";
}

bool is_table(const std::string& data) {
  return !is_named(data) && std::filesystem::is_regular_file(data);
}

bool is_picture_folder(const std::string& data) {
  return !is_named(data) && !is_table(data) && !has_idx_files(data);
}

TrainingData open_images(const CommandLine& line, const ProcessGroup& group, const Task& known) {
  if (is_picture_folder(line.data)) return open_pictures(line, group, known);
  return open_idx(line, group, known);
}

TrainingData in_memory(const CommandLine& line, const ProcessGroup& group, const Task& task,
                       const Dataset& train, const Dataset& test) {
  const torch::Device device = line.torch_device(group);
  const int64_t train_size = train.data.size(0);
  const sconce::data::DistributedSampler sampler(train_size, group, {.seed = line.seed});
  return {.task = task,
          .train = sconce::data::Batches(rows_on(device, train),
                                         {.batch_size = line.batch_size, .sampler = sampler}),
          .test = sconce::data::Batches(rows_on(device, test, group.rank(), group.world_size()),
                                        {.batch_size = test_batch_size}),
          .train_size = train_size,
          .test_size = test.data.size(0)};
}

ExampleSplit split_examples(const at::Tensor& targets, const std::vector<int64_t>& indices,
                            double test_fraction, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto* target = targets.const_data_ptr<int64_t>();
  ExampleSplit split;
  size_t classes = 0;
  for (auto begin = indices.begin(); begin != indices.end(); ++classes) {
    const auto end = std::find_if(begin, indices.end(),
                                  [&](int64_t index) { return target[index] != target[*begin]; });
    const auto count = end - begin;
    const auto wanted = std::llround(test_fraction * static_cast<double>(count));
    const auto tests = std::min<int64_t>(wanted, count - 1);
    const auto order = torch::randperm(count, generator, torch::kLong);
    std::vector<bool> is_test(count);
    for (int64_t i = 0; i < tests; ++i) is_test[order[i].item<int64_t>()] = true;
    for (int64_t i = 0; i < count; ++i) (is_test[i] ? split.test : split.train).push_back(begin[i]);
    begin = end;
  }
  if (split.test.empty()) {
    throw std::runtime_error(
        "--test-fraction: no examples are left for testing; "
        "the average number of examples per class is " +
        std::to_string(indices.size() / classes));
  }
  return split;
}

}  // namespace train
