#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sconce::program::detail {

/// Where and how a child process runs.
struct ChildSettings {
  std::filesystem::path folder;  // its current folder
  std::filesystem::path log;     // an absolute path; receives stdout and stderr
  std::map<std::string, std::string> variables = {};  // added to this process's environment
};

/// A program in a separate process group, which inherits no open file.
class ChildProcess {
 public:
  /// Starts the command. Its first word is looked up in PATH unless it contains a slash.
  /// @throw std::system_error with the errno if that fails.
  ChildProcess(const std::vector<std::string>& command, const ChildSettings& settings);

  /// Kills the process and its group.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns whether the process has ended, without waiting. Processes that it started and left
  /// behind are then killed.
  bool has_ended();

  /// Returns, after the end, how it failed, such as "exit code 1" or "signal 9 (Killed)", or an
  /// empty text.
  const std::string& failure() const { return failure_; }

  /// Returns, after the end, whether a signal ended the process.
  bool was_killed() const { return was_killed_; }

 private:
  void collect();

  pid_t id_ = -1;
  bool has_ended_ = false;
  bool was_killed_ = false;
  std::string failure_ = {};
};

}  // namespace sconce::program::detail
