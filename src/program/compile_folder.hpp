#pragma once

#include <filesystem>
#include <string>

namespace sconce::program::detail {

/// A lock that allows only one process at a time to compile a package. The lock is released when
/// this object is destroyed or the process ends.
class CompileLock {
 public:
  /// Tries to take the lock without waiting. Creates the lock file if it is missing.
  /// @throw c10::Error if the file cannot be created or locked.
  explicit CompileLock(const std::filesystem::path& file);
  ~CompileLock();
  CompileLock(const CompileLock&) = delete;
  CompileLock& operator=(const CompileLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  int fd_ = -1;
  bool is_held_ = false;
};

/// The temporary folder of a compilation, .compiling.<key>.* in the cache. The folder is accessible
/// only to this user, and is locked while it is in use.
class CompileFolder {
 public:
  /// @throw c10::Error if the folder cannot be created or locked.
  CompileFolder(const std::filesystem::path& cache, const std::string& key);

  /// Removes the folder.
  ~CompileFolder();
  CompileFolder(const CompileFolder&) = delete;
  CompileFolder& operator=(const CompileFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Removes folders left by killed processes.
  static void remove_abandoned(const std::filesystem::path& cache);

 private:
  std::filesystem::path path_ = {};
  int fd_ = -1;
};

}  // namespace sconce::program::detail
