#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "check_path.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/process_group.hpp"

// Reads this process's rank and the group's rendezvous address from the options and from the
// environment variables that the launcher sets.
namespace sconce::distributed {

struct Launch {
  std::string launcher = {};  // source of rank and size; empty without a launcher
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 0;            // 0: unknown
  std::optional<int> job_number = {};  // last 3 digits; without it, MASTER_PORT must be set
  std::string address = {};            // where the ranks meet over TCP
  uint16_t port = 0;
  std::string file = {};          // the file through which they meet
  bool uses_agent_store = false;  // torchrun's agent owns the store; rank 0 is a client

  // Returns whether some ranks are known to be on other machines.
  bool spans_machines() const { return local_world_size > 0 && local_world_size < world_size; }

  // Returns whether all ranks are known to be on this machine.
  bool is_on_one_machine() const { return world_size == 1 || local_world_size == world_size; }
};

// Returns the GPU for a rank. `gpus` is the number of GPUs visible to this process. The visible
// GPUs are either all GPUs in the machine or a single GPU that the launcher exposes to this rank.
inline torch::Device device_of(int local_rank, int gpus) {
  return gpus > 0 ? gpu(local_rank % gpus) : cpu();
}

namespace detail {

constexpr auto init_name = "sconce::distributed::ProcessGroup::init: ";

inline std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  return value;
}

inline int integer(const std::string& text, const std::string& name, int lowest = 0) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  TORCH_CHECK(parsed.ec == std::errc() && parsed.ptr == end && value >= lowest, init_name,
              "expected an integer no less than ", lowest, " in ", name, ", got '", text, "'");
  return value;
}

inline std::optional<int> integer_variable(const char* name, int lowest = 0) {
  const auto text = variable(name);
  if (!text) return {};
  return integer(*text, name, lowest);
}

inline uint16_t port_number(const std::string& text, const std::string& name) {
  const int port = integer(text, name, 1);
  TORCH_CHECK(port < 65536, init_name, "expected a port number no greater than 65535 in ", name,
              ", got ", port);
  return static_cast<uint16_t>(port);
}

// The environment variables that a launcher sets.
struct Launcher {
  const char* name;
  const char* rank;  // set only in processes that this launcher started
  const char* world_size;
  const char* local_rank;                // if unset: the rank
  const char* local_world_size;          // if null: slurm_local_world_size
  std::array<const char*, 2> jobs = {};  // the first one set provides the port's digits; if none is
                                         // set, the launcher specifies where the ranks meet
};

// The launchers are listed in the order in which they are checked. Processes started by mpirun in a
// Slurm job inherit the job's environment variables.
inline constexpr std::array launchers = {
    Launcher{"torchrun's variables", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    Launcher{"Open MPI's variables",
             "OMPI_COMM_WORLD_RANK",
             "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE",
             {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    Launcher{"Slurm's variables",
             "SLURM_PROCID",
             "SLURM_NTASKS",
             "SLURM_LOCALID",
             nullptr,
             {"SLURM_JOB_ID"}},
};
inline constexpr const Launcher& torchrun = launchers.front();

// Returns the launcher that started this process, or null.
inline const Launcher* find_launcher() {
  if (variable(torchrun.world_size)) return &torchrun;  // set manually, without a rank
  const auto found = std::find_if(launchers.begin(), launchers.end(),
                                  [](const auto& each) { return variable(each.rank).has_value(); });
  return found == launchers.end() ? nullptr : &*found;
}

// Returns the last three digits of the job number, which let two jobs on one machine use different
// ports.
inline std::optional<int> job_number(const Launcher& from) {
  if (from.jobs[0] == nullptr) return {};
  int number = 0;
  for (const char* name : from.jobs) {
    const auto job = name == nullptr ? std::nullopt : variable(name);
    if (!job) continue;
    for (const char c : *job) {
      if (c >= '0' && c <= '9') number = (number * 10 + (c - '0')) % 1000;
    }
    break;
  }
  return number;
}

inline int slurm_local_world_size(int world_size) {
  if (integer_variable("SLURM_NNODES", 1).value_or(1) == 1) return world_size;
  // a list such as "4(x2),3"
  return std::atoi(variable("SLURM_TASKS_PER_NODE").value_or("0").c_str());
}

// Determines the local rank and the number of ranks on this machine.
inline void read_place(Launch& launch, const Launcher& from) {
  launch.local_rank = integer_variable(from.local_rank).value_or(launch.rank);
  launch.local_world_size = from.local_world_size == nullptr
                                ? slurm_local_world_size(launch.world_size)
                                : integer_variable(from.local_world_size, 1).value_or(0);
}

inline Launch read_launcher(const Launcher& from) {
  const auto required = [&](const char* name) {
    const auto value = integer_variable(name);
    TORCH_CHECK(value, init_name, "expected ", name,
                " in the environment, which contains only some of ", from.name);
    return *value;
  };
  Launch launch{.launcher = from.name};
  launch.rank = required(from.rank);
  launch.world_size = required(from.world_size);
  read_place(launch, from);
  launch.job_number = job_number(from);
  return launch;
}

inline void read_meeting_point(Launch& launch) {
  const auto address = variable("MASTER_ADDR");
  const auto port = variable("MASTER_PORT");
  if (!launch.job_number || launch.local_world_size < launch.world_size) {
    TORCH_CHECK(address && port, init_name,
                "expected MASTER_ADDR and MASTER_PORT (the address of rank 0 and a free port "
                "on its machine) in the environment in addition to ",
                launch.launcher, "; there is no ", address ? "MASTER_PORT" : "MASTER_ADDR");
  }
  launch.address = address.value_or("127.0.0.1");
  launch.port = port ? port_number(*port, "MASTER_PORT")
                     : static_cast<uint16_t>(29500 + launch.job_number.value_or(0));
}

inline void parse_meeting_point(Launch& launch, const std::string& method) {
  const std::string tcp = "tcp://", file = "file://";
  if (method.starts_with(file) && method.size() > file.size()) {
    launch.file = method.substr(file.size());
    check_path(launch.file, "sconce::distributed::ProcessGroup::init");
    return;
  }
  const auto colon = method.rfind(':');
  TORCH_CHECK(method.starts_with(tcp) && colon > tcp.size(), init_name,
              "expected init_method env://, tcp://host:port, or file:///path, got '", method, "'");
  launch.address = method.substr(tcp.size(), colon - tcp.size());
  if (launch.address.starts_with('[') && launch.address.ends_with(']')) {  // [::1]
    launch.address = launch.address.substr(1, launch.address.size() - 2);
  }
  launch.port = port_number(method.substr(colon + 1), "init_method");
}

// Returns whether torchrun's agent owns the store that the ranks use for rendezvous. The agent
// serves a store only at the agent's own address, which init_method may also specify.
inline bool agent_owns_store(const Launch& launch) {
  return variable("TORCHELASTIC_USE_AGENT_STORE") == "True" &&
         variable("MASTER_ADDR") == launch.address &&
         variable("MASTER_PORT") == std::to_string(launch.port);
}

}  // namespace detail

inline Launch read_launch(const InitOptions& options) {
  using detail::init_name;
  const bool explicit_ranks = options.rank && options.world_size;
  const auto* launcher = explicit_ranks ? nullptr : detail::find_launcher();
  Launch launch = launcher ? detail::read_launcher(*launcher) : Launch{};
  if (explicit_ranks) launch.launcher = "the options";
  launch.rank = options.rank.value_or(launch.rank);
  launch.world_size = options.world_size.value_or(launch.world_size);
  if (explicit_ranks) detail::read_place(launch, detail::torchrun);
  const bool by_environment = options.init_method == "env://";
  TORCH_CHECK(!launch.launcher.empty() || (by_environment && !options.rank && !options.world_size),
              init_name,
              "expected both rank and world_size, either in the options or from "
              "a launcher, with init_method '",
              options.init_method, "'");
  TORCH_CHECK(launch.world_size >= 1 && launch.rank >= 0 && launch.rank < launch.world_size,
              init_name, "expected a rank from 0 to world_size - 1, got rank ", launch.rank, " of ",
              launch.world_size, " from ", launch.launcher);
  if (!by_environment) {
    detail::parse_meeting_point(launch, options.init_method);
  } else if (launch.world_size > 1) {
    detail::read_meeting_point(launch);
  }
  launch.uses_agent_store = detail::agent_owns_store(launch);
  return launch;
}

}  // namespace sconce::distributed
