#include "output_of.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace simgpu {

namespace {

// Returns the pointers that exec expects. The pointers remain valid as long as the strings exist.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part = {};
  for (ssize_t size = 1; size > 0;) {
    size = read(file, part.data(), part.size());
    if (size > 0) text.append(part.data(), static_cast<size_t>(size));
  }
  return text;
}

}  // namespace

std::string output_of(const std::vector<std::string>& command,
                      const std::vector<std::string>& variables) {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  auto arguments = command;
  auto environment = variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, command.front().c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string text = failed != 0 ? "" : read_all(ends[0]);
  close(ends[0]);
  int status = failed;
  if (failed == 0) waitpid(child, &status, 0);
  return status == 0 ? text : "";
}

}  // namespace simgpu
