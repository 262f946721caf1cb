#include "new_folders.hpp"

#include <unistd.h>

#include <system_error>

namespace train {

namespace fs = std::filesystem;

NewFolders::NewFolders(const std::vector<fs::path>& folders) {
  std::error_code ignored;  // an inaccessible folder cannot be created either
  for (const auto& folder : folders) {
    fs::path path = fs::weakly_canonical(folder, ignored);
    if (!path.has_filename()) path = path.parent_path();
    for (; !path.empty() && !fs::exists(path, ignored) && !ignored; path = path.parent_path()) {
      missing_.push_back(path);
    }
  }
}

NewFolders::~NewFolders() {
  for (const auto& folder : missing_) ::rmdir(folder.c_str());  // fails if the folder is not empty
}

}  // namespace train
