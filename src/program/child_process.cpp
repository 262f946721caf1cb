#include "program/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>

namespace sconce::program::detail {

namespace {

constexpr const char* lost = "another part of the program collected the child's exit code";

void check_spawn(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// The files and the working directory of the child process.
class SpawnActions {
 public:
  explicit SpawnActions(const ChildSettings& settings) {
    check_spawn(::posix_spawn_file_actions_init(&actions_), "cannot prepare a process");
    constexpr int mode = O_WRONLY | O_CREAT | O_TRUNC;
    int error = ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0) {
      error = ::posix_spawn_file_actions_addopen(&actions_, 1, settings.log.c_str(), mode, 0600);
    }
    if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    if (error == 0) {
      error = ::posix_spawn_file_actions_addchdir_np(&actions_, settings.folder.c_str());
    }
    if (error != 0) ::posix_spawn_file_actions_destroy(&actions_);
    check_spawn(error, "cannot prepare a process");
  }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
};

// Moves the child process to a separate process group and resets its signal dispositions to the
// defaults. If the child process inherited a disposition that ignores SIGCHLD, Python's
// subprocesses would fail.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    check_spawn(::posix_spawnattr_init(&attributes_), "cannot prepare a process");
    sigset_t none, reset;
    sigemptyset(&none);
    sigemptyset(&reset);
    for (const int signal : {SIGCHLD, SIGPIPE}) sigaddset(&reset, signal);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &reset);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_ = {};
};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

// Returns pointers to the strings, which must outlive the pointers. A null pointer terminates the
// list.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildSettings& settings) {
  const SpawnActions actions(settings);
  const SpawnAttributes attributes;
  const auto environment = environment_with(settings.variables);
  const auto words = pointers_to(command);
  check_spawn(::posix_spawnp(&id_, words[0], actions.get(), attributes.get(), words.data(),
                             pointers_to(environment).data()),
              "cannot start a process");
}

ChildProcess::~ChildProcess() {
  if (!has_ended()) collect();
}

bool ChildProcess::has_ended() {
  if (has_ended_) return true;
  siginfo_t info = {};
  // This call does not reap the process. Until the process is reaped, its ID cannot be reused for
  // another process or group.
  const int result = ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result == 0 && info.si_pid == 0) return false;
  if (result == 0) {
    collect();
  } else {
    failure_ = lost;
  }
  return has_ended_ = true;
}

void ChildProcess::collect() {
  ::kill(-id_, SIGKILL);
  int status = 0;
  pid_t collected = 0;
  do {
    collected = ::waitpid(id_, &status, 0);
  } while (collected < 0 && errno == EINTR);
  was_killed_ = collected == id_ && WIFSIGNALED(status);
  if (collected != id_) {
    failure_ = lost;
  } else if (was_killed_) {
    const int signal = WTERMSIG(status);
    failure_ = "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  } else if (WEXITSTATUS(status) != 0) {
    failure_ = "exit code " + std::to_string(WEXITSTATUS(status));
  }
}

}  // namespace sconce::program::detail
