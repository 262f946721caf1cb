#pragma once

#include <filesystem>
#include <string>

namespace sconce::program::detail {

/// A lock that lets one process at a time compile a package. It ends with this object or with the
/// process.
class CompileLock {
 public:
  /// Takes the lock if it is free. Makes its file if that is missing.
  /// @throw c10::Error if the file cannot be made or locked.
  explicit CompileLock(const std::filesystem::path& file);
  ~CompileLock();
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  int fd_ = -1;
  bool is_held_ = false;
};

/// The temporary folder of a compilation, .compiling.<key>.* in the cache. Only this user can enter
/// it. While it is in use it is locked.
class CompileFolder {
 public:
  /// @throw c10::Error if the folder cannot be made or locked.
  CompileFolder(const std::filesystem::path& cache, const std::string& key);

  /// Removes the folder.
  ~CompileFolder();
  CompileFolder(const CompileFolder&) = delete;
  CompileFolder& operator=(const CompileFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Removes the folders of killed processes.
  static void remove_abandoned(const std::filesystem::path& cache);

 private:
  std::filesystem::path path_ = {};
  int fd_ = -1;
};

}  // namespace sconce::program::detail
