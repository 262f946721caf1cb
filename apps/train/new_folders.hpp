#pragma once

#include <filesystem>
#include <vector>

namespace train {

/// Removes folders that a run created but left empty because it failed before writing a file.
class NewFolders {
 public:
  /// Records which of these folders and their parents do not exist yet. Empty paths are ignored.
  explicit NewFolders(const std::vector<std::filesystem::path>& folders);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::filesystem::path> missing_ = {};  // each folder before its parent
};

}  // namespace train
