#include "sconce/vision/image_folder.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "check_path.hpp"
#include "io/folder_names.hpp"

namespace sconce::vision {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  TORCH_CHECK(false, "sconce::vision::ImageFolder: ", path.string(), ": ", why);
}

// Returns the entries in a folder, sorted by name, except for entries whose names start with a dot.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  auto names = detail::folder_names(folder, error);
  if (error) refuse(folder, "cannot read the folder: " + error.message());
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  std::sort(names.begin(), names.end());
  std::vector<fs::path> entries;
  for (const auto& name : names) entries.push_back(folder / name);
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) refuse(path, error.message());
  return fs::is_directory(status);
}

// Returns whether a name can be printed on one line. The name must be valid UTF-8 without control
// characters.
bool is_printable(const fs::path& name) {
  try {
    const std::u32string codes = name.u32string();
    return std::none_of(codes.begin(), codes.end(), [](char32_t code) {
      const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
      const bool is_surrogate = code >= 0xd800 && code < 0xe000;  // accepted by some libraries
      return is_control || is_surrogate;
    });
  } catch (const std::exception&) {  // not UTF-8
    return false;
  }
}

// Following a link to a parent folder would create a cycle.
void check_class(const fs::path& folder, const fs::path& class_folder) {
  if (!is_printable(class_folder.filename())) {
    refuse(class_folder, "expected a class name in UTF-8, without control characters");
  }
  const fs::path above = fs::canonical(folder);
  const fs::path target = fs::canonical(class_folder);
  if (std::mismatch(target.begin(), target.end(), above.begin(), above.end()).first ==
      target.end()) {
    refuse(class_folder, "expected a class folder, got a link to a parent folder");
  }
}

std::vector<fs::path> pictures_of(const fs::path& class_folder) {
  std::vector<fs::path> pictures;
  for (const auto& path : entries_of(class_folder)) {
    if (is_folder(path)) refuse(path, "expected only files in a class folder, got a folder");
    if (is_image_file(path)) pictures.push_back(path);
  }
  if (pictures.empty()) {
    refuse(class_folder,
           "expected at least one image (.png, .jpg, .jpeg) in the class folder, found none");
  }
  return pictures;
}

}  // namespace

bool is_image_file(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

ImageFolder::ImageFolder(const fs::path& root, ImageFolderOptions options)
    : options_(std::move(options)) {
  check_path(root, "sconce::vision::ImageFolder");
  for (const auto& path : entries_of(root)) {
    if (!is_folder(path)) continue;
    check_class(root, path);
    const auto target = static_cast<int64_t>(classes_.size());
    for (const auto& picture : pictures_of(path)) samples_.push_back({picture, target});
    classes_.push_back(path.filename().string());
  }
  if (classes_.empty()) refuse(root, "expected a folder of images for each class, found none");
}

data::Dataset ImageFolder::get(int64_t index, const at::Generator& generator) const {
  TORCH_CHECK_INDEX(index >= 0 && index < size(),
                    "sconce::vision::ImageFolder: expected an index from 0 to ", size() - 1,
                    ", got ", index);
  const ImageSample& sample = samples_[static_cast<size_t>(index)];
  return {options_.transform(read_image(sample.path, options_.mode, options_.limits), generator),
          at::scalar_tensor(sample.target, at::kLong)};
}

torch::Tensor ImageFolder::targets() const {
  const at::Tensor targets = at::empty({size()}, at::kLong);
  std::transform(samples_.begin(), samples_.end(), targets.mutable_data_ptr<int64_t>(),
                 [](const ImageSample& sample) { return sample.target; });
  return targets;
}

}  // namespace sconce::vision
