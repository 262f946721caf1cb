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

/// What a compilation makes.
struct CompileTask {
  std::string key;
  PackageTarget target;
  std::filesystem::path python;
};

/// The compilation of one package by a child process, or by another process that compiles the same
/// key. If that one ends without a package, this one starts a child. A thread watches the child
/// and adds the package to the cache, so that another process gets it even while this one waits for
/// that process.
class Compilation {
 public:
  /// Writes the program and starts the thread. Does not throw.
  Compilation(const PackageCache& cache, CompileTask task, const Graph& program);

  /// Kills the child process and removes its files.
  ~Compilation();
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  /// Returns whether the package is in the cache or cannot be made. Never waits.
  bool is_over() const { return is_over_; }

  /// Waits until it is over.
  void wait() const { is_over_.wait(false); }

  /// Returns, after the end, why there is no package, in one line, or an empty text.
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
  std::jthread thread_ = {};  // last, because it uses the others
};

}  // namespace sconce::program::detail
