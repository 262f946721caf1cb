#include "simgpu/runtime/nccl/peer_process.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

namespace simgpu::nccl {

namespace {

struct ProcessStatus {
  char state = 'X';
  uint64_t start_time = 0;
};

// Parses /proc/<id>/stat. The fields are numbered from 1: field 3 is the state, and field 22 is the
// start time. Field 2 is the program's name in parentheses, and the name may itself contain spaces
// and parentheses.
std::optional<ProcessStatus> status_of(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  ProcessStatus status;
  fields >> status.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> status.start_time;
  if (!fields) return std::nullopt;
  return status;
}

}  // namespace

Process this_process() {
  const auto status = status_of(getpid());
  return {getpid(), status ? status->start_time : 0};
}

bool is_running(const Process& process) {
  const auto status = status_of(process.id);
  return status && status->state != 'Z' && status->state != 'X' &&
         status->start_time == process.start_time;
}

}  // namespace simgpu::nccl
