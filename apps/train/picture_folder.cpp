#include "picture_folder.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sconce/data/loader.hpp"
#include "sconce/data/transforms.hpp"
#include "sconce/vision/image.hpp"

namespace train {

namespace {

namespace fs = std::filesystem;

constexpr int64_t measured_pictures = 10'000;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw std::runtime_error(path.string() + ": " + why);
}

// Returns the entries of a folder, sorted by name, without names that begin with a dot.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    if (!path.filename().string().starts_with('.')) entries.push_back(path);
  }
  if (error) refuse(folder, "cannot read the folder: " + error.message());
  const auto name = [](const fs::path& path) { return path.filename().string(); };
  std::sort(entries.begin(), entries.end(),
            [&](const fs::path& a, const fs::path& b) { return name(a) < name(b); });
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) refuse(path, error.message());
  return fs::is_directory(status);
}

bool has_picture_suffix(const fs::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

// Returns whether a name can be printed on a line: UTF-8 without control characters.
bool is_printable(const fs::path& name) {
  try {
    const std::u32string codes = name.u32string();
    return std::none_of(codes.begin(), codes.end(), [](char32_t code) {
      const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
      const bool is_surrogate = code >= 0xd800 && code < 0xe000;  // which some libraries let pass
      return is_control || is_surrogate;
    });
  } catch (const std::exception&) {  // not UTF-8
    return false;
  }
}

// A link to a folder around it would be a cycle.
void check_class(const fs::path& folder, const fs::path& of_class) {
  if (!is_printable(of_class.filename())) {
    refuse(of_class, "expected a class's name in UTF-8, without control characters");
  }
  const fs::path above = fs::canonical(folder);
  const fs::path target = fs::canonical(of_class);
  if (std::mismatch(target.begin(), target.end(), above.begin(), above.end()).first ==
      target.end()) {
    refuse(of_class, "expected a class's folder, got a link to a folder around it");
  }
}

std::vector<fs::path> pictures_of(const fs::path& of_class) {
  std::vector<fs::path> pictures;
  for (const auto& path : entries_of(of_class)) {
    if (is_folder(path)) refuse(path, "expected only files in a class's folder, got a folder");
    if (has_picture_suffix(path)) pictures.push_back(path);
  }
  if (pictures.empty()) {
    refuse(of_class, "expected a class's pictures (.png, .jpg, .jpeg), found none");
  }
  return pictures;
}

// A source of items that say whether a picture can be read.
struct PictureChecks {
  std::vector<PictureFile> files;

  int64_t size() const { return static_cast<int64_t>(files.size()); }

  at::Tensor get(int64_t index) const {
    bool is_good = true;
    try {
      sconce::vision::read_image(files[index].path);
    } catch (const c10::NotImplementedError&) {  // no library to tell by
      throw;
    } catch (const c10::Error&) {
      is_good = false;
    }
    return at::scalar_tensor(is_good, at::kBool);
  }
};

at::Tensor random_order(size_t size, const at::Generator& generator) {
  return at::randperm(static_cast<int64_t>(size), generator, at::kLong);
}

}  // namespace

bool has_idx_files(const fs::path& folder) {
  for (const char* part : {"train", "t10k"}) {
    for (const char* kind : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
      const std::string name = std::string(part) + kind;
      if (fs::exists(folder / name) || fs::exists(folder / (name + ".gz"))) return true;
    }
  }
  return false;
}

PictureFolder list_pictures(const fs::path& folder) {
  PictureFolder list;
  for (const auto& path : entries_of(folder)) {
    if (!is_folder(path)) continue;
    check_class(folder, path);
    const auto target = static_cast<int64_t>(list.classes.size());
    for (const auto& picture : pictures_of(path)) list.files.push_back({picture, target});
    list.classes.push_back(path.filename().string());
  }
  if (list.classes.empty()) {
    refuse(folder,
           "expected MNIST's four IDX files, or a folder of pictures for each class, "
           "found neither");
  }
  if (has_idx_files(folder)) {
    refuse(folder, "expected IDX files or folders of pictures, found both");
  }
  if (list.classes.size() == 1) {
    refuse(folder, "expected two classes or more, found one folder, " + list.classes[0]);
  }
  return list;
}

void check_headers(const PictureFolder& folder) {
  for (const auto& file : folder.files) sconce::vision::read_image_size(file.path);
}

int64_t leave_out_bad(PictureFolder& folder, int num_workers) {
  const sconce::data::Loader checks(PictureChecks{folder.files},
                                    {.batch_size = 64, .num_workers = num_workers});
  std::vector<PictureFile> good;
  std::vector<int64_t> left(folder.classes.size());
  auto file = folder.files.begin();
  for (const at::Tensor& batch : checks) {
    for (int64_t i = 0; i < batch.size(0); ++i, ++file) {
      if (!batch[i].item<bool>()) continue;
      ++left[file->target];
      good.push_back(*file);
    }
  }
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0)
      throw std::runtime_error("--skip-bad: no picture is left of class " + folder.classes[i]);
  }
  std::swap(folder.files, good);
  return static_cast<int64_t>(good.size() - folder.files.size());
}

PictureSplit split_pictures(const PictureFolder& folder, double test_fraction, uint64_t seed) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  PictureSplit split;
  for (auto begin = folder.files.begin(); begin != folder.files.end();) {
    const auto end = std::find_if(begin, folder.files.end(), [&](const PictureFile& file) {
      return file.target != begin->target;
    });
    const auto count = end - begin;
    const auto wanted = std::llround(test_fraction * static_cast<double>(count));
    const auto tests = std::min<int64_t>(wanted, count - 1);
    const auto order = random_order(count, generator);
    std::vector<bool> is_test(count);
    for (int64_t i = 0; i < tests; ++i) is_test[order[i].item<int64_t>()] = true;
    for (int64_t i = 0; i < count; ++i) (is_test[i] ? split.test : split.train).push_back(begin[i]);
    begin = end;
  }
  if (split.test.empty()) {
    throw std::runtime_error("--test-fraction: no picture is left to test on: a class has " +
                             std::to_string(folder.files.size() / folder.classes.size()) +
                             " on average");
  }
  return split;
}

at::Tensor load_picture(const fs::path& file, at::IntArrayRef shape) {
  using sconce::vision::ImageReadMode;
  const at::Tensor picture =
      sconce::vision::read_image(file, shape[0] == 1 ? ImageReadMode::gray : ImageReadMode::rgb);
  const sconce::data::Resize resize({shape[1], shape[2]});
  return resize(picture.unsqueeze(0)).squeeze(0).contiguous();
}

sconce::data::Dataset PictureItems::get(int64_t index) const {
  const PictureFile& file = files_[index];
  return {load_picture(file.path, shape_), at::scalar_tensor(file.target, at::kLong)};
}

void measure_channels(Images& images, const std::vector<PictureFile>& files, uint64_t seed,
                      int num_workers) {
  const auto order = random_order(files.size(), at::make_generator<at::CPUGeneratorImpl>(seed))
                         .slice(0, 0, measured_pictures);
  std::vector<PictureFile> chosen;
  for (int64_t i = 0; i < order.size(0); ++i) chosen.push_back(files[order[i].item<int64_t>()]);
  const sconce::data::Loader loader(PictureItems(chosen, images.shape),
                                    {.batch_size = 64, .num_workers = num_workers});
  const int64_t channels = images.shape[0];
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
  // The figures are float32, as for IDX files. The deviation of a constant channel is 0.
  const auto count = static_cast<long double>(chosen.size()) * images.shape[1] * images.shape[2];
  for (int64_t c = 0; c < channels; ++c) {
    const long double apart = squares[c] - static_cast<long double>(sums[c]) * sums[c] / count;
    images.mean.push_back(static_cast<float>(sums[c] / count));
    images.std.push_back(
        std::max(static_cast<float>(std::sqrt(apart / std::max(count - 1, 1.0L))), 1e-6F));
  }
}

}  // namespace train
