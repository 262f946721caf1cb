#include "picture_folder.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>

#include "sconce/data/data_loader.hpp"

namespace train {

namespace {

namespace fs = std::filesystem;

constexpr int64_t measured_pictures = 10'000;

// A source whose items indicate whether an image can be read.
struct PictureChecks {
  std::vector<sconce::vision::ImageSample> samples;
  sconce::vision::ImageLimits limits;

  int64_t size() const { return static_cast<int64_t>(samples.size()); }

  at::Tensor get(int64_t index) const {
    bool is_good = true;
    try {
      sconce::vision::read_image(samples[index].path, sconce::vision::ImageReadMode::unchanged,
                                 limits);
    } catch (const c10::NotImplementedError&) {  // there is no library to check it with
      throw;
    } catch (const c10::Error&) {
      is_good = false;
    }
    return at::scalar_tensor(is_good, at::kBool);
  }
};

}  // namespace

fs::path idx_file(const fs::path& folder, const std::string& part, const std::string& kind) {
  const std::string name = part + '-' + kind;
  const std::string type = kind == "images" ? "idx3-ubyte" : "idx1-ubyte";
  for (const std::string& end : {'.' + type + ".gz", '.' + type, '-' + type + ".gz"}) {
    // Some archives extract to a folder with this name.
    if (fs::exists(folder / (name + end)) && !fs::is_directory(folder / (name + end))) {
      return folder / (name + end);
    }
  }
  return folder / (name + '-' + type);
}

bool has_idx_files(const fs::path& folder) {
  for (const char* part : {"train", "t10k"}) {
    for (const char* kind : {"images", "labels"}) {
      const fs::path file = idx_file(folder, part, kind);
      if (fs::exists(file) && !fs::is_directory(file)) return true;
    }
  }
  return false;
}

bool has_picture_folders(const fs::path& folder) {
  const auto entries_of = [](const fs::path& of) {
    std::error_code ignored;  // an unreadable folder does not count
    return fs::directory_iterator(of, ignored);
  };
  for (const auto& entry : entries_of(folder)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    for (const auto& file : entries_of(entry)) {
      if (sconce::vision::is_image_file(file.path())) return true;
    }
  }
  return false;
}

sconce::vision::ImageFolderOptions folder_options(const std::vector<int64_t>& shape,
                                                  const ImageLimits& limits) {
  using sconce::vision::ImageReadMode;
  const sconce::vision::transforms::Resize resize({shape[1], shape[2]});
  return {.transform = [resize](const at::Tensor& picture) { return resize(picture).contiguous(); },
          .mode = shape[0] == 1 ? ImageReadMode::gray : ImageReadMode::rgb,
          .limits = limits};
}

std::shared_ptr<const ImageFolder> open_folder(const fs::path& folder,
                                               const std::vector<int64_t>& shape,
                                               const ImageLimits& limits) {
  auto opened = std::make_shared<const ImageFolder>(folder, folder_options(shape, limits));
  TORCH_CHECK(opened->classes().size() > 1, folder.string(),
              ": expected at least two class folders, found only ", opened->classes()[0]);
  return opened;
}

std::vector<int64_t> check_headers(const ImageFolder& folder, const ImageLimits& limits) {
  for (const auto& sample : folder.samples()) sconce::vision::read_image_size(sample.path, limits);
  std::vector<int64_t> all(folder.samples().size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int64_t> leave_out_bad(const ImageFolder& folder, int num_workers,
                                   const ImageLimits& limits) {
  const sconce::data::DataLoader checks(PictureChecks{folder.samples(), limits},
                                        {.batch_size = 64, .num_workers = num_workers});
  std::vector<int64_t> good;
  std::vector<int64_t> left(folder.classes().size());
  int64_t index = 0;
  for (const at::Tensor& batch : checks) {
    for (int64_t i = 0; i < batch.size(0); ++i, ++index) {
      if (!batch[i].item<bool>()) continue;
      ++left[folder.samples()[index].target];
      good.push_back(index);
    }
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0)
      throw std::runtime_error("--skip-bad: no images remain in class " + folder.classes()[i]);
  }
  return good;
}

void measure_channels(Task& task, const Pictures& pictures, uint64_t seed, int num_workers) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto order =
      at::randperm(pictures.size(), generator, at::kLong).slice(0, 0, measured_pictures);
  std::vector<int64_t> chosen(order.size(0));
  for (int64_t i = 0; i < order.size(0); ++i) chosen[i] = order[i].item<int64_t>();
  const sconce::data::DataLoader loader(sconce::data::Subset(pictures, chosen),
                                        {.batch_size = 64, .num_workers = num_workers});
  const int64_t channels = task.shape[0];
  std::vector<int64_t> sums(channels), squares(channels);
  for (const auto& batch : loader) {
    const at::Tensor bytes = batch.data.to(at::kInt);
    const auto sum = bytes.sum({0, 2, 3});
    const auto square = bytes.square().sum({0, 2, 3});
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] += sum[c].item<int64_t>();
      squares[c] += square[c].item<int64_t>();
    }
  }
  // The means and standard deviations are float32, as with IDX files. The standard deviation of a
  // constant channel is 0.
  const auto count = static_cast<long double>(chosen.size()) * task.shape[1] * task.shape[2];
  for (int64_t c = 0; c < channels; ++c) {
    const long double apart = std::max(  // may be negative because of rounding
        squares[c] - static_cast<long double>(sums[c]) * sums[c] / count, 0.0L);
    task.mean.push_back(static_cast<float>(sums[c] / count));
    task.std.push_back(
        std::max(static_cast<float>(std::sqrt(apart / std::max(count - 1, 1.0L))), 1e-6F));
  }
}

}  // namespace train
