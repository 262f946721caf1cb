#include "new_folders.hpp"

#include <unistd.h>

#include <system_error>

namespace train {

namespace fs = std::filesystem;

NewFolders::NewFolders(const std::vector<fs::path>& folders) {
  std::error_code ignored;  // a folder that cannot be looked at cannot be made either
  for (const auto& folder : folders) {
    fs::path path = fs::weakly_canonical(folder, ignored);
    if (!path.has_filename()) path = path.parent_path();
    for (; !path.empty() && !fs::exists(path, ignored) && !ignored; path = path.parent_path()) {
      missing_.push_back(path);
    }
  }
}

NewFolders::~NewFolders() {
  for (const auto& folder : missing_) ::rmdir(folder.c_str());  // one with files in it stays
}

}  // namespace train
