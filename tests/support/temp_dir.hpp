#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sconce::test {

/// Returns the bytes of a file, or an empty string if it cannot be read.
inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the names of the entries in a folder, in sorted order.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Creates an empty folder that is removed, along with its contents, at the end of its scope.
class TempDir {
 public:
  /// Creates the folder in `parent`. The default is the system's temporary folder.
  explicit TempDir(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const std::string name = "sconce-" + std::to_string(random()) + std::to_string(random());
      path_ = parent / name;
      if (std::filesystem::create_directory(path_)) return;
    }
    throw std::runtime_error("TempDir: no free name under " + parent.string());
  }

  /// Removes the folder. Ignores errors, because a destructor must not throw.
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes `bytes` to a file in the folder and returns the file's path.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::filesystem::path file = path_ / name;
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("TempDir: cannot write " + file.string());
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace sconce::test
