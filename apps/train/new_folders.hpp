#pragma once

#include <filesystem>
#include <vector>

namespace train {

/// Removes the folders that a run made and left empty, because it failed before it wrote a file.
class NewFolders {
 public:
  /// Notes which of these folders, and of the folders above them, do not exist yet. Empty paths
  /// stand for none.
  explicit NewFolders(const std::vector<std::filesystem::path>& folders);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::filesystem::path> missing_ = {};  // a folder comes before the one above it
};

}  // namespace train
