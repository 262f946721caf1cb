#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "program/compilation.hpp"
#include "program/graph.hpp"
#include "program/package_target.hpp"

namespace sconce::program::detail {

/// A folder of compiled packages, which processes share. For each key, such as a hash of the
/// program, it contains:
/// - <key>/package.pt2;
/// - <key>/about.json: the target, the size, and the CRC-32 of the package. It is written last, so
///   the package of a killed compilation does not count;
/// - <key>/choice: a text about the package;
/// - <key>.lock, which the process that compiles holds;
/// - .compiling.<key>.*: its temporary folder.
/// Inductor's own cache is in inductor/.
///
/// A package is machine code, so nobody else may write to the folder.
class PackageCache {
 public:
  /// Makes the folder, and its parents, for this user alone if it is missing. An empty path stands
  /// for $XDG_CACHE_HOME/sconce/steps, or ~/.cache/sconce/steps.
  /// @throw c10::Error, with a command that helps, if it is not a folder, belongs to another user,
  /// or its group or others can write to it.
  explicit PackageCache(const std::filesystem::path& folder);

  /// The result of a search.
  struct Found {
    std::optional<std::filesystem::path> package = {};
    std::string ignored = {};  // why a package that exists cannot be used
  };

  /// Looks for the key's package. Reads all of it. Does not throw.
  Found find(const std::string& key, const PackageTarget& target) const;

  /// Returns the text that `store_choice` stored for the key, or an empty text. A new package of
  /// the key removes it. Does not throw.
  std::string choice(const std::string& key) const;

  /// Stores a text for the key. Returns why that failed, or an empty text. Does not throw.
  [[nodiscard]] std::string store_choice(const std::string& key, const std::string& text) const;

  /// Starts to compile the program, unless another process already compiles this key: then waits
  /// for its package, in a separate thread. The Python must have the LibTorch of the target. Does
  /// not throw: the compilation reports errors. Cannot be called during a capture.
  std::unique_ptr<Compilation> compile(const std::string& key, const PackageTarget& target,
                                       const Graph& program,
                                       const std::filesystem::path& python) const;

  /// Moves a package, which must be on the same file system, into the cache.
  /// @throw c10::Error, or another exception, if that fails. `find` then returns no package.
  void add(const std::string& key, const PackageTarget& target,
           const std::filesystem::path& package) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace sconce::program::detail
