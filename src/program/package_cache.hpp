#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "program/compilation.hpp"
#include "program/graph.hpp"
#include "program/package_target.hpp"

namespace sconce::program::detail {

/// A folder of compiled packages that processes share. For each key, such as a hash of the program,
/// it contains:
/// - <key>/package.pt2;
/// - <key>/about.json: the target, and the size and CRC-32 of the package. This file is written
///   last, so packages from killed compilations are ignored;
/// - <key>/choice: a text about the package;
/// - <key>.lock: a lock held by the process that is compiling;
/// - .compiling.<key>.*: a temporary folder. Inductor's own cache is in inductor/.
///
/// Packages contain machine code, so no other user may write to the folder.
class PackageCache {
 public:
  /// Creates the folder and its parents for this user only if they are missing. An empty path means
  /// $XDG_CACHE_HOME/sconce/steps, or ~/.cache/sconce/steps if that variable is not set.
  /// @throw c10::Error with a command that fixes the problem if the path is not a folder, belongs
  /// to another user, or is writable by its group or others.
  explicit PackageCache(const std::filesystem::path& folder);

  /// The result of a lookup.
  struct Found {
    std::optional<std::filesystem::path> package = {};
    std::string ignored = {};  // why an existing package cannot be used
  };

  /// Looks up the package for the key and reads the whole package. Does not throw.
  Found find(const std::string& key, const PackageTarget& target) const;

  /// Returns the text that `store_choice` stored for the key, or an empty string. Adding a new
  /// package for the key removes the text. Does not throw.
  std::string choice(const std::string& key) const;

  /// Stores a text for the key. Returns an empty string on success, and the reason on failure. Does
  /// not throw.
  [[nodiscard]] std::string store_choice(const std::string& key, const std::string& text) const;

  /// Starts compiling the program. If another process is already compiling this key, waits for the
  /// other process's package in a separate thread instead. `python` must contain the target's
  /// LibTorch. Does not throw, because the compilation reports errors. Must not be called during a
  /// capture.
  std::unique_ptr<Compilation> compile(const std::string& key, const PackageTarget& target,
                                       const Graph& program,
                                       const std::filesystem::path& python) const;

  /// Moves a package into the cache. The package must be on the same file system.
  /// @throw c10::Error or another exception on failure. `find` then returns no package.
  void add(const std::string& key, const PackageTarget& target,
           const std::filesystem::path& package) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace sconce::program::detail
