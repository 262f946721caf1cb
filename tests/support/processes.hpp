#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.hpp"

namespace sconce::test {

using Variables = std::map<std::string, std::string>;
using Seconds = std::chrono::duration<double>;

/// Returns the text without the lines in which the Debian build of Gloo reports its connections.
inline std::string without_gloo_reports(const std::string& text) {
  std::string rest;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (!line.starts_with("[./gloo/") || line.find("] INFO ") == line.npos) rest += line;
  }
  return rest;
}

/// A child process that runs a program. If it is still running at the end of its scope or when this
/// program exits, it is killed.
class Process {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts the program in the current environment, without the launcher variables and with
  /// `variables` added.
  Process(const std::vector<std::string>& command, const Variables& variables) {
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string out = (folder_.path() / "out").string();
    const std::string err = (folder_.path() / "err").string();
    id_ = fork();
    if (id_ < 0) throw std::runtime_error("Process: cannot fork");
    if (id_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID",
                             "OMPI_COMM_WORLD_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
      unsetenv(name);
    }
    setenv("OMP_NUM_THREADS", "1", 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const int mode = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    dup2(open(out.c_str(), mode, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), mode, 0600), STDERR_FILENO);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  ~Process() {
    if (ended_) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Checks, without waiting, whether the process has exited or stopped.
  void poll() {
    int status = 0;
    if (ended_ || waitpid(id_, &status, WNOHANG | WUNTRACED) != id_) return;
    changed_at = Clock::now();
    stopped = WIFSTOPPED(status);
    ended_ = !stopped;
    if (WIFEXITED(status)) exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) killed_by = WTERMSIG(status);
  }

  /// Sends the process a signal, such as SIGKILL.
  void send(int signal) const { kill(id_, signal); }

  int id() const { return id_; }
  bool ended() const { return ended_; }
  std::string out() const { return contents(folder_.path() / "out"); }
  /// Returns the error stream without the lines in which the Debian build of Gloo reports each
  /// connection.
  std::string err() const { return without_gloo_reports(contents(folder_.path() / "err")); }

  int exit_code = -1;  ///< -1 while it is running or if it was killed
  int killed_by = 0;
  bool stopped = false;
  Clock::time_point changed_at = {};  ///< when it was first seen to have exited or stopped

 private:
  TempDir folder_;
  pid_t id_ = -1;
  bool ended_ = false;
};

using Processes = std::vector<std::unique_ptr<Process>>;

/// Waits until every process has exited or stopped, for at most `patience`.
inline void wait_for(Processes& processes, Seconds patience) {
  const auto deadline = Process::Clock::now() + patience;
  bool all = false;
  while (!all && Process::Clock::now() < deadline) {
    all = true;
    for (auto& process : processes) {
      process->poll();
      all &= process->ended() || process->stopped;
    }
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// A socket that listens on a loopback port for its lifetime and never accepts a connection. Port 0
/// selects a free port.
class Listener {
 public:
  explicit Listener(uint16_t port = 0) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd_, raw, size) != 0 || listen(fd_, 8) != 0 || getsockname(fd_, raw, &size) != 0) {
      close(fd_);
      throw std::runtime_error("Listener: the port is not free");
    }
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string port() const { return std::to_string(port_); }

 private:
  int fd_;
  uint16_t port_ = 0;
};

/// Returns a free port, no lower than `first`, that no other test receives before this program
/// exits. The kernel does not assign ports below 32768 to sockets that request an arbitrary port.
/// The port is reserved by an abstract Unix socket that closes when the process exits.
inline uint16_t reserve_port(uint16_t first, uint16_t count) {
  for (int i = 0; i < count; ++i) {
    const auto port = static_cast<uint16_t>(first + (getpid() + i) % count);
    const std::string name = "sconce-test-port-" + std::to_string(port);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, name.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    try {
      if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        const Listener free(port);
        return port;
      }
    } catch (const std::runtime_error&) {
    }
    close(fd);
  }
  throw std::runtime_error("reserve_port: no port is free");
}

/// Returns a port for the ranks in one group.
inline std::string free_port() {
  return std::to_string(reserve_port(20000, 9000));
}

/// Returns the variables that torchrun sets for one rank on one machine.
inline Variables rank_variables(int rank, int world_size, const std::string& port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port}};
}

/// Starts the command once for each rank.
inline Processes start_ranks(int world_size, const std::vector<std::string>& command) {
  const std::string port = free_port();
  Processes ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<Process>(command, rank_variables(rank, world_size, port)));
  }
  return ranks;
}

}  // namespace sconce::test
