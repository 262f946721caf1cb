#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "program/compile_folder.hpp"
#include "program/graph.hpp"
#include "program/package_target.hpp"

namespace sconce::program::detail {

class ChildProcess;
class PackageCache;

/// Describes a compilation.
struct CompileTask {
  std::string key;
  PackageTarget target;
  std::filesystem::path python;
};

/// The compilation of one package, either in a child process or in another process that is already
/// compiling the same key. If the other process ends without creating a package, this process
/// starts a child process. A thread watches the child process and adds the package to the cache.
/// Therefore, another process can use the package even if this process is waiting for the other
/// process.
class Compilation {
 public:
  /// Writes the program and starts the thread. Does not throw.
  Compilation(const PackageCache& cache, CompileTask task, const Graph& program);

  /// Kills the child process and removes its files.
  ~Compilation();
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  /// Returns whether the package is in the cache or cannot be created. Never waits.
  bool is_over() const { return is_over_; }

  /// Waits for the compilation to finish.
  void wait() const { is_over_.wait(false); }

  /// After the compilation has finished, returns the reason why there is no package, as a single
  /// line. Returns an empty string if there is a package.
  const std::string& error() const { return error_; }

 private:
  void compile(const std::stop_token& stop) const;
  void write_python_package() const;
  void check(const ChildProcess& child) const;
  void end(std::string error);

  std::unique_ptr<const PackageCache> cache_;
  CompileTask task_;
  std::unique_ptr<CompileFolder> folder_ = {};
  std::string error_ = {};
  std::atomic<bool> is_over_ = false;
  std::jthread thread_ = {};  // last, because it uses the members above
};

}  // namespace sconce::program::detail
