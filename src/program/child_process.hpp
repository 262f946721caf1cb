#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sconce::program::detail {

/// The working directory, output, and environment of a child process.
struct ChildSettings {
  std::filesystem::path folder;  // the working directory
  std::filesystem::path log;     // an absolute path; receives stdout and stderr
  std::map<std::string, std::string> variables = {};  // added to the environment of this process
};

/// A program that runs in a separate process group and does not inherit open files.
class ChildProcess {
 public:
  /// Starts the command. The first word is looked up in PATH unless it contains a slash.
  /// @throw std::system_error with errno on failure.
  ChildProcess(const std::vector<std::string>& command, const ChildSettings& settings);

  /// Kills the process and its group.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns whether the process has ended, without waiting. If it has ended, kills any processes
  /// that it left running.
  bool has_ended();

  /// After the process has ended, returns a description of its failure, such as "exit code 1" or
  /// "signal 9 (Killed)", or an empty string on success.
  const std::string& failure() const { return failure_; }

  /// After the process has ended, returns whether it was terminated by a signal.
  bool was_killed() const { return was_killed_; }

 private:
  void collect();

  pid_t id_ = -1;
  bool has_ended_ = false;
  bool was_killed_ = false;
  std::string failure_ = {};
};

}  // namespace sconce::program::detail
