#include "sconce/distributed/process_group.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <sstream>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "catch.hpp"
#include "distributed/agree_backend.hpp"
#include "distributed/gloo.hpp"
#include "distributed/launch.hpp"
#include "distributed/rendezvous.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/one_with_gloo.hpp"
#include "support/processes.hpp"
#include "support/require_gpu.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::distributed::InitOptions;
using sconce::distributed::ProcessGroup;
using sconce::distributed::read_launch;
using sconce::test::free_port;
using sconce::test::Process;
using sconce::test::Processes;
using sconce::test::Seconds;
using sconce::test::start_ranks;
using sconce::test::Variables;
using sconce::test::wait_for;

namespace {

std::vector<std::string> worker(std::vector<std::string> words) {
  words.insert(words.begin(), SCONCE_WORKER);
  return words;
}

// Sets environment variables in this process for the lifetime of the object.
class Environment {
 public:
  explicit Environment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables variables_;
};

const Variables slurm = {{"SLURM_PROCID", "1"},
                         {"SLURM_NTASKS", "2"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_JOB_ID", "71234"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

std::string refusal(const InitOptions& options = {}) {
  return sconce::test::error_of([&] { return ProcessGroup::init(options); });
}

// Returns a non-loopback address of this machine, if any.
std::optional<std::string> network_address() {
  ifaddrs* all = nullptr;
  REQUIRE(getifaddrs(&all) == 0);
  std::optional<std::string> found;
  for (const auto* each = all; each != nullptr && !found; each = each->ifa_next) {
    const bool is_usable = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET &&
                           (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!is_usable) continue;
    sconce::distributed::SocketAddress address = {.storage = {}, .length = sizeof(sockaddr_in)};
    std::memcpy(&address.storage, each->ifa_addr, address.length);
    found = address.host();
  }
  freeifaddrs(all);
  return found;
}

// Returns a job number that maps to a free port. The number resembles the job numbers that Slurm
// and Open MPI assign.
std::string job_with_a_free_port() {
  return std::to_string(71000 + sconce::test::reserve_port(29500, 1000) - 29500);
}

constexpr double timeout = 3;  // in seconds, for workers that encounter a fault

std::vector<std::string> faulty(const std::string& what, const std::string& where, int victim) {
  return worker({"fault", "what=" + what, "where=" + where, "victim=" + std::to_string(victim),
                 "timeout=3000"});
}

// Checks that a process failed within the time limit, and that its exception reports the rank and
// the operation.
void check_survivor(const Process& process, int rank, int size, const std::string& operations,
                    double seconds) {
  const std::string err = process.err();
  INFO(err << "rank " << rank << " ended after " << seconds << " s");
  CHECK(process.exit_code == 1);
  CHECK(seconds <= timeout + 2);
  const std::string who = "rank " + std::to_string(rank) + " of " + std::to_string(size) + ": ";
  CHECK(std::regex_search(err, std::regex("sconce::[a-zA-Z_:]+: " + who + "(" + operations + ")")));
}

// Returns the time at which the process's main function "began" or "ended", according to the clock
// that all processes share. The time from "began" to "ended" excludes loading and unloading
// LibTorch, which can take seconds on a busy machine.
double when(const Process& process, const std::string& what) {
  const std::string err = process.err();
  const auto place = err.rfind(what + ": ");
  return place == std::string::npos ? NAN : std::stod(err.substr(place + what.size() + 2));
}

double own_seconds(const Process& process) {
  return when(process, "ended") - when(process, "began");
}

void require_success(const Processes& ranks) {
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
  }
}

// Runs reductions with each operation in random subgroups, in both C++ and Python.
void compare_subgroups(int size, uint32_t count) {
  const sconce::test::TempDir folder;
  {
    std::mt19937 dice(count);
    static const std::array ops = {"avg", "sum", "min", "max", "product"};
    std::ofstream cases(folder.path() / "cases");
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<int> ranks(static_cast<size_t>(size));
      std::iota(ranks.begin(), ranks.end(), 0);
      std::shuffle(ranks.begin(), ranks.end(), dice);
      ranks.resize(1 + dice() % ranks.size());
      cases << ops[i % ops.size()] << ' ' << c10::Join(",", ranks) << '\n';
    }
  }
  sconce::test::ask_python(folder, "subgroups.py", std::to_string(size));
  const auto file = folder.path() / "cases";
  auto ranks = start_ranks(size, worker({"subgroups", "cases=" + file.string()}));
  wait_for(ranks, Seconds(300));
  require_success(ranks);
  for (int rank = 0; rank < size; ++rank) {
    std::ifstream theirs(folder.path() / c10::str(size, ".", rank));
    const std::string expected((std::istreambuf_iterator<char>(theirs)), {});
    CHECK(ranks[rank]->out() == expected);
    CHECK(std::count(expected.begin(), expected.end(), '\n') > 0);
  }
}

}  // namespace

TEST_CASE("without a launcher, init returns a single-process group whose collectives do nothing") {
  const auto group = GENERATE(ProcessGroup(), ProcessGroup::init());
  CHECK(group.rank() == 0);
  CHECK(group.world_size() == 1);
  CHECK(group.local_rank() == 0);
  CHECK(group.device() == sconce::try_gpu());
  CHECK(group.backend().empty());
  CHECK_FALSE(group.c10d());

  const auto tensor = torch::tensor({1.F, 2.F});
  group.all_reduce(tensor);
  group.broadcast(tensor, 0);
  group.barrier();
  CHECK(torch::equal(tensor, torch::tensor({1.F, 2.F})));
  const auto gathered = group.all_gather(tensor);
  REQUIRE(gathered.size() == 1);
  CHECK(torch::equal(gathered[0], tensor));
  CHECK_FALSE(gathered[0].is_alias_of(tensor));
  CHECK(torch::equal(group.reduce_scatter({tensor}), tensor));
  CHECK_THROWS_WITH(group.broadcast(tensor, 1), ContainsSubstring("src from 0 to 0, got 1"));
  CHECK_THROWS_WITH(group.reduce_scatter({tensor, tensor}),
                    ContainsSubstring("expected 1 tensors"));
}

TEST_CASE("copies of a process group compare equal and keep the group alive") {
  std::optional<ProcessGroup> group(sconce::test::one_with_gloo());
  ProcessGroup copy;
  CHECK_FALSE(copy == *group);
  CHECK_FALSE(copy == ProcessGroup());
  copy = std::move(*group);
  CHECK(copy == *group);
  group.reset();
  CHECK(copy.backend() == "gloo");
  const auto tensor = torch::ones({1});
  copy.all_reduce(tensor);
  CHECK(tensor.item<float>() == 1);
}

TEST_CASE("device_of assigns a visible GPU to each rank, or the CPU if no GPU is visible") {
  using sconce::distributed::device_of;
  CHECK(device_of(3, 0) == sconce::cpu());
  CHECK(device_of(3, 4) == sconce::gpu(3));
  CHECK(device_of(3, 2) == sconce::gpu(1));
  CHECK(device_of(3, 1) == sconce::gpu(0));
}

TEST_CASE("a rank's device is determined by its local rank, except that gloo always uses the CPU") {
  const Environment third(Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "3"}});
  const int gpus = sconce::num_gpus();
  CHECK(ProcessGroup::init().device() == sconce::distributed::device_of(3, gpus));
  CHECK(ProcessGroup::init({.backend = "gloo"}).device() == sconce::cpu());
  CHECK(ProcessGroup().device() == sconce::try_gpu());
}

TEST_CASE("without a launcher, the backend option does not create a c10d group") {
  CHECK_FALSE(ProcessGroup::init({.backend = "gloo"}).c10d());
}

TEST_CASE(
    "a single-process group started by a launcher uses the backend specified in the options") {
  const Environment one(Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK_FALSE(ProcessGroup::init().c10d());
  const auto group = ProcessGroup::init({.backend = "gloo"});
  CHECK(group.backend() == "gloo");
  CHECK(group.c10d());
  const auto tensor = torch::tensor({1.F, 2.F});
  group.all_reduce(tensor);
  CHECK(torch::equal(tensor, torch::tensor({1.F, 2.F})));
}

TEST_CASE("a broken pipe does not terminate a process that belongs to a process group", "[alone]") {
  const auto group = sconce::test::one_with_gloo();
  CHECK(raise(SIGPIPE) == 0);
}

TEST_CASE(
    "each launcher's environment variables define the rank, the sizes, and the rendezvous "
    "address") {
  const Variables torchrun = {{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node0"},
                              {"MASTER_PORT", "1234"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const Variables meeting = {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "1234"}};
  const Variables slurm_on_two = {
      {"SLURM_NNODES", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "4(x2)"}};
  const Variables open_mpi_alone = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  struct Case {
    std::string name;
    Variables variables;
    int rank, world_size, local_rank, local_world_size;
    std::string address;
    int port;
  };
  const std::vector<Case> cases = {
      {"torchrun", torchrun, 5, 8, 1, 4, "node0", 1234},
      {"Slurm on one machine", slurm, 1, 2, 1, 2, "127.0.0.1", 29500 + 234},
      {"Slurm on several", with(slurm, with(slurm_on_two, meeting)), 1, 8, 1, 4, "node0", 1234},
      {"Open MPI on several", with(open_mpi, meeting), 1, 2, 0, 1, "node0", 1234},
      {"Open MPI on one machine", with(open_mpi_alone, {{"OMPI_MCA_ess_base_jobid", "167614877"}}),
       1, 2, 0, 2, "127.0.0.1", 29500 + 877},
      {"torchrun before Slurm", with(slurm, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), 0, 1, 0, 0, "",
       0},
      {"Open MPI within a job of Slurm's", with(with(slurm, slurm_on_two), open_mpi_alone), 1, 2, 0,
       2, "127.0.0.1", 29500}};
  for (const auto& c : cases) {
    INFO(c.name);
    const Environment environment(c.variables);
    const auto launch = read_launch({});
    CHECK(launch.rank == c.rank);
    CHECK(launch.world_size == c.world_size);
    CHECK(launch.local_rank == c.local_rank);
    CHECK(launch.local_world_size == c.local_world_size);
    CHECK(launch.address == c.address);
    CHECK(launch.port == c.port);
    CHECK(launch.uses_agent_store == (c.name == "torchrun"));
  }
}

TEST_CASE("the options override the rank, size, and rendezvous address from the environment") {
  const Environment environment(slurm);
  const Environment of_machine(Variables{{"LOCAL_WORLD_SIZE", "3"}});
  const auto launch = read_launch({.init_method = "tcp://[::1]:77", .world_size = 3, .rank = 2});
  CHECK(launch.local_world_size == 3);
  CHECK(launch.rank == 2);
  CHECK(launch.world_size == 3);
  CHECK(launch.address == "::1");
  CHECK(launch.port == 77);
}

TEST_CASE("torchrun's agent owns its store regardless of how init_method spells the address") {
  const Environment environment(Variables{{"RANK", "0"},
                                          {"WORLD_SIZE", "2"},
                                          {"MASTER_ADDR", "fd00::2"},
                                          {"MASTER_PORT", "1234"},
                                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  const auto agent_owns_store = [](const std::string& init_method) {
    return read_launch({.init_method = init_method}).uses_agent_store;
  };
  CHECK(agent_owns_store("env://"));
  CHECK(agent_owns_store("tcp://fd00::2:1234"));
  CHECK(agent_owns_store("tcp://[fd00::2]:1234"));
  CHECK_FALSE(agent_owns_store("tcp://[fd00::2]:1235"));
  CHECK_FALSE(agent_owns_store("tcp://node0:1234"));
  CHECK_FALSE(agent_owns_store("file:///tmp/meet"));
  const Environment without(Variables{{"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  CHECK_FALSE(agent_owns_store("tcp://[fd00::2]:1234"));
}

TEST_CASE("missing or invalid launch variables are rejected, and the error names them") {
  const std::vector<std::pair<Variables, std::string>> cases = {
      {{{"RANK", "0"}}, "expected WORLD_SIZE in the environment"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}, "there is no MASTER_ADDR"},
      {with(slurm, {{"SLURM_NNODES", "2"}, {"MASTER_ADDR", "node0"}}), "there is no MASTER_PORT"},
      {open_mpi, "MASTER_ADDR and MASTER_PORT"},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "integer no less than 0 in RANK, got 'one'"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "got rank 2 of 2"},
      {with(slurm, {{"MASTER_PORT", "65536"}}), "no greater than 65535 in MASTER_PORT, got 65536"}};
  for (const auto& [variables, error] : cases) {
    const Environment environment(variables);
    CHECK_THAT(refusal(), ContainsSubstring(error));
  }
}

TEST_CASE("ProcessGroup::init rejects invalid options") {
  CHECK_THAT(refusal({.backend = "mpi"}), ContainsSubstring("got 'mpi'"));
  CHECK_THAT(refusal({.timeout = std::chrono::milliseconds(0)}), ContainsSubstring("got 0 ms"));
  CHECK_THAT(refusal({.timeout = std::chrono::milliseconds::max()}),
             ContainsSubstring("at most one year"));
  CHECK_THAT(refusal({.init_method = "tcp://127.0.0.1:1"}),
             ContainsSubstring("expected both rank and"));
  CHECK_THAT(refusal({.world_size = 2}), ContainsSubstring("expected both rank and world_size"));
  CHECK_THAT(refusal({.init_method = "udp://a:1", .world_size = 2, .rank = 0}),
             ContainsSubstring("got 'udp://a:1'"));
  CHECK_THAT(refusal({.init_method = "tcp://127.0.0.1", .world_size = 2, .rank = 0}),
             ContainsSubstring("tcp://host:port"));
}

TEST_CASE("an endpoint finds a listening address or reports why it cannot find one") {
  using sconce::distributed::Clock;
  using sconce::distributed::Endpoint;
  using sconce::distributed::resolve;
  const sconce::test::Listener listener;
  const auto port = static_cast<uint16_t>(std::stoi(listener.port()));
  const sconce::distributed::SocketAddress unusable = {};  // without an address family
  const auto refusing = resolve("127.0.0.2", port).front();
  const auto listening = resolve("127.0.0.1", port).front();
  const std::chrono::seconds patience(30);
  CHECK(Endpoint("all", {unusable, refusing, listening}).ask(patience).host == "127.0.0.1");
  const auto refused = Endpoint("two", {unusable, refusing}).ask(patience);
  CHECK(refused.host == "");
  CHECK(refused.error == ECONNREFUSED);
  CHECK_THROWS_WITH(
      sconce::distributed::wait_for_listener(Endpoint("node0:1", {unusable}), Clock::now()),
      ContainsSubstring("nothing listens on node0:1 (Address family not supported by protocol): "
                        "rank 0 has not joined"));
}

TEST_CASE("an endpoint listens on the first usable address unless the port is already in use") {
  using sconce::distributed::Endpoint;
  using sconce::distributed::resolve;
  const sconce::test::Listener taken;
  const auto taken_port = static_cast<uint16_t>(std::stoi(taken.port()));
  const sconce::distributed::SocketAddress unusable = {};  // without an address family
  const auto port = static_cast<uint16_t>(std::stoi(free_port()));
  const Endpoint endpoint("node0", {unusable, resolve("127.0.0.1", port).front()});
  const int fd = endpoint.listen();
  CHECK(endpoint.ask(std::chrono::seconds(30)).host == "127.0.0.1");
  close(fd);
  const Endpoint second("node0", {resolve("127.0.0.1", taken_port).front(),
                                  resolve("127.0.0.2", taken_port).front()});
  CHECK_THROWS_WITH(second.listen(),
                    ContainsSubstring("cannot listen on node0 (Address already in use)"));
}

TEST_CASE("a rank on another machine rejects a loopback address for rank 0") {
  const std::string name = "/proc/sys/kernel/hostname";
  std::ifstream file(name);
  std::string host;
  file >> host;
  const Environment environment(Variables{{"RANK", "1"},
                                          {"WORLD_SIZE", "2"},
                                          {"LOCAL_RANK", "0"},
                                          {"LOCAL_WORLD_SIZE", "1"},
                                          {"MASTER_ADDR", host},
                                          {"MASTER_PORT", free_port()}});
  const auto launch = read_launch({});
  CHECK(launch.spans_machines());
  try {
    const sconce::distributed::Endpoint endpoint(launch.address, launch.port);
    if (!endpoint.is_loopback()) SKIP("this machine's name is not a loopback address");
  } catch (const c10::Error&) {
    SKIP("this machine's name does not resolve");
  }
  CHECK_THAT(refusal(), ContainsSubstring("an address that reaches rank 0's machine, got " + host));
}

TEST_CASE("on several machines, using a file as init_method requires GLOO_SOCKET_IFNAME",
          "[distributed]") {
  const sconce::test::TempDir folder;
  auto variables = sconce::test::rank_variables(0, 2, "1");
  variables["LOCAL_WORLD_SIZE"] = "1";
  Processes ranks;
  for (const char* rank : {"0", "1"}) {
    variables["RANK"] = rank;
    ranks.push_back(std::make_unique<Process>(
        worker({"launch", "init_method=file://" + (folder.path() / "meet").string()}), variables));
  }
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    CHECK(rank->exit_code == 1);
    CHECK_THAT(rank->err(), ContainsSubstring("expected GLOO_SOCKET_IFNAME"));
  }
}

TEST_CASE("collectives across three processes return the same values as in Python",
          "[distributed]") {
  auto ranks = start_ranks(3, worker({"collectives"}));
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(ranks[rank]->out() ==
          "max: 3 10\n"
          "min: 1 8\n"
          "product: 6 720\n"
          "sum: 6 27\n"
          "column: " +
              std::vector<std::string>{"1 6 1 1 6 1\n", "2 6 2 2 6 2\n", "3 6 3 3 6 3\n"}[rank] +
              "broadcast: 3 8\n"
              "gathered: 3\n"
              "gathered: 4\n"
              "gathered: 5\n"
              "scattered: " +
              std::vector<std::string>{"6 27\n", "306 327\n", "606 627\n"}[rank]);
    CHECK(ranks[rank]->err() == "");
  }
}

TEST_CASE("subgroups of three processes produce the same reductions as in Python",
          "[distributed][python]") {
  compare_subgroups(3, 12);
}

TEST_CASE("200 random subgroups of four processes produce the same reductions as in Python",
          "[.][slow]") {
  compare_subgroups(4, 200);
}

TEST_CASE("if one rank passes a different list of ranks, new_group throws on all ranks",
          "[distributed]") {
  const sconce::test::TempDir folder;  // a file store outlives rank 0
  const std::string meet = "init_method=file://" + (folder.path() / "meet").string();
  Processes ranks;
  for (const std::string rank : {"0", "1", "2"}) {
    const auto words =
        worker({"other_subgroups", meet, "world_size=3", "rank=" + rank, "what=other", "victim=1"});
    ranks.push_back(std::make_unique<Process>(words, Variables{}));
  }
  wait_for(ranks, Seconds(60));
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(ranks[rank]->exit_code == 1);
    CHECK_THAT(ranks[rank]->err(), ContainsSubstring(c10::str(
                                       "ProcessGroup::new_group: rank ", rank, " of 3: expected ",
                                       "the same list of ranks on every rank")));
  }
}

TEST_CASE("new_group fails within the timeout if a rank does not call it", "[distributed]") {
  auto ranks =
      start_ranks(3, worker({"other_subgroups", "what=absent", "victim=1", "timeout=3000"}));
  wait_for(ranks, Seconds(40));
  for (const int rank : {0, 2}) {
    check_survivor(
        *ranks[rank], rank, 3,
        "these ranks have not joined: 1|the rendezvous store was closed before",
        when(*ranks[rank], "ended") - Seconds(ranks[1]->changed_at.time_since_epoch()).count());
  }
}

TEST_CASE(
    "new_group rejects missing and duplicate ranks, and a single-process group is its own "
    "subgroup") {
  const ProcessGroup group;
  const auto refusal_of = [&](const std::vector<int>& ranks) {
    return sconce::test::error_of([&] { (void)group.new_group(ranks); });
  };
  const std::string who = "sconce::distributed::ProcessGroup::new_group: expected ";
  CHECK_THAT(refusal_of({}), StartsWith(who + "at least one rank, got none"));
  CHECK_THAT(refusal_of({0, 0}), StartsWith(who + "each rank once, got "));
  CHECK_THAT(refusal_of({1}), StartsWith(who + "ranks from 0 to 0, got "));
  CHECK_THAT(refusal_of({-1}), StartsWith(who + "ranks from 0 to 0, got "));
  CHECK_THROWS_WITH(group.new_group({0}, std::chrono::milliseconds(0)),
                    ContainsSubstring("expected a timeout above 0"));
  const auto same = group.new_group({0});
  REQUIRE(same);
  CHECK(same->world_size() == 1);
  const auto tensor = torch::full({2}, 3.0);
  same->all_reduce(tensor, sconce::distributed::ReduceOp::avg);
  CHECK(tensor.equal(torch::full({2}, 3.0)));
}

TEST_CASE("metrics summed over two ranks equal the metrics computed on a single rank",
          "[distributed]") {
  auto ranks = start_ranks(2, worker({"metrics"}));
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  for (const auto& rank : ranks) {
    std::istringstream lines(rank->out());
    int metrics = 0;
    for (std::string line; std::getline(lines, line); ++metrics) {
      INFO(line);
      std::istringstream words(line.substr(line.find(':') + 1));
      const std::vector<double> values(std::istream_iterator<double>(words), {});
      REQUIRE(values.size() % 2 == 0);
      REQUIRE_FALSE(values.empty());
      const auto both = torch::tensor(values, torch::kDouble).view({2, -1});
      CHECK(both[0].allclose(both[1], 1e-5));
    }
    CHECK(metrics == 10);
  }
}

TEST_CASE("the store and Gloo listen only on the loopback interface", "[distributed]") {
  auto ranks = start_ranks(2, worker({"listeners"}));
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  CHECK(ranks[0]->out() == "127.0.0.1\n127.0.0.1\n");
  CHECK(ranks[1]->out() == "127.0.0.1\n");
}

TEST_CASE("other machines can reach rank 0 even if rank 0's MASTER_ADDR is localhost",
          "[distributed]") {
  const auto address = network_address();
  if (!address) SKIP("this machine has only loopback addresses");
  const bool one_each = GENERATE(false, true);  // whether the launcher reports more processes
  const std::string port = free_port();
  Processes ranks;
  for (const int rank : {0, 1}) {
    Variables variables = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", rank == 0 ? "localhost" : *address},
                           {"MASTER_PORT", port}};
    if (one_each) variables = with(variables, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
    ranks.push_back(std::make_unique<Process>(worker({"listeners"}), variables));
  }
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  CHECK_THAT(ranks[0]->out(), ContainsSubstring(*address + "\n"));  // the Gloo socket's address
  CHECK(ranks[1]->out() == *address + "\n");
}

TEST_CASE("two processes connect with each launcher's variables and each init_method",
          "[distributed]") {
  const sconce::test::TempDir folder;
  const std::string port = free_port();
  const std::string job = job_with_a_free_port();
  Processes ranks;
  const auto start = [&](const std::vector<std::string>& words, const Variables& variables) {
    ranks.push_back(std::make_unique<Process>(worker(words), variables));
  };
  SECTION("torchrun's") {
    ranks = start_ranks(2, worker({"launch"}));
  }
  SECTION("Slurm's") {
    for (const char* rank : {"0", "1"}) {
      start({"launch"},
            with(slurm, {{"SLURM_PROCID", rank}, {"SLURM_LOCALID", rank}, {"SLURM_JOB_ID", job}}));
    }
  }
  SECTION("Open MPI's") {
    for (const char* rank : {"0", "1"}) {
      start({"launch"}, with(open_mpi, {{"OMPI_COMM_WORLD_RANK", rank},
                                        {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                        {"OMPI_MCA_ess_base_jobid", job}}));
    }
  }
  SECTION("tcp://") {
    for (const char* rank : {"0", "1"}) {
      start({"launch", "init_method=tcp://localhost:" + port, "world_size=2",
             "rank=" + std::string(rank)},
            {});
    }
  }
  SECTION("file://") {
    for (const char* rank : {"0", "1"}) {
      start({"launch", "init_method=file://" + (folder.path() / "meet").string(), "world_size=2",
             "rank=" + std::string(rank)},
            {});
    }
  }
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  const bool gpu_each = sconce::num_gpus() >= 2 && sconce::distributed::is_nccl_available();
  const std::string backend = gpu_each ? "cpu:gloo,cuda:nccl" : "gloo";
  for (const int rank : {0, 1}) {
    const std::string number = std::to_string(rank);
    CHECK(ranks[rank]->out() ==
          "rank " + number + " of 2, here " + number + ", backend " + backend + "\nsum: 2\n");
    CHECK(ranks[rank]->err() == "");
  }
}

TEST_CASE("the default backend includes NCCL if each rank has its own GPU") {
  using sconce::distributed::agree_backend;
  CHECK(agree_backend({{}}) == "gloo");
  CHECK(agree_backend({{.gpu = "a"}, {.gpu = "b"}, {.gpu = "c"}}) == "cpu:gloo,cuda:nccl");
  CHECK(agree_backend({{.gpu = "a"}, {.gpu = "b"}, {.gpu = "a"}}) == "gloo");  // a shared GPU
  CHECK(agree_backend({{.gpu = "a"}, {}}) == "gloo");
  CHECK(agree_backend({{.named = "nccl", .gpu = "a"}, {.named = "nccl", .gpu = "a"}}) == "nccl");
  CHECK(agree_backend({{.named = "gloo", .gpu = "a"}, {.named = "gloo"}}) == "gloo");
  CHECK_THROWS_WITH(agree_backend({{.named = "gloo"}, {.named = "gloo"}, {.named = "nccl"}}),
                    StartsWith("expected the same backend in the options of every rank, got gloo "
                               "on rank 0 and nccl on rank 2"));
  CHECK_THROWS_WITH(agree_backend({{}, {.named = "gloo"}}),
                    ContainsSubstring("got none on rank 0 and gloo on rank 1"));
}

TEST_CASE("all ranks throw if their backend options differ", "[distributed]") {
  const sconce::test::TempDir folder;
  const std::string meet = "init_method=file://" + (folder.path() / "meet").string();
  Processes ranks;
  for (const std::string rank : {"0", "1"}) {
    std::vector<std::string> words = {"launch", meet, "world_size=2", "rank=" + rank};
    if (rank == "1") words.push_back("backend=gloo");
    ranks.push_back(std::make_unique<Process>(worker(words), Variables{}));
  }
  wait_for(ranks, Seconds(60));
  for (const auto& rank : ranks) {
    CHECK(rank->exit_code == 1);
    CHECK_THAT(rank->err(), ContainsSubstring("of 2: expected the same backend in the options of "
                                              "every rank, got none on rank 0 and gloo on rank 1"));
  }
}

TEST_CASE("if each rank has its own GPU, the ranks use NCCL and the Trainer uses their GPUs",
          "[gpu]") {
  sconce::test::require_gpu();
  if (sconce::num_gpus() < 2) SKIP("needs two GPUs");
  const std::string shown = GENERATE("its own", "1", "0,1");
  const sconce::test::TempDir folder;
  const std::string meet = "init_method=file://" + (folder.path() / "meet").string();
  Processes ranks;
  for (const std::string rank : {"0", "1"}) {
    ranks.push_back(std::make_unique<Process>(
        worker({"launch", meet, "world_size=2", "rank=" + rank}),
        Variables{{"CUDA_VISIBLE_DEVICES", shown == "its own" ? rank : shown}}));
  }
  wait_for(ranks, Seconds(60));
  require_success(ranks);
  const std::string backend = shown == "1" ? "gloo" : "cpu:gloo,cuda:nccl";
  for (int rank = 0; rank < 2; ++rank) {
    CHECK_THAT(ranks[rank]->out(), ContainsSubstring("backend " + backend + "\n"));
    CHECK_THAT(ranks[rank]->out(), ContainsSubstring("num_gpus = 1: cuda:" +
                                                     std::to_string(shown == "0,1" ? rank : 0)));
  }
}

namespace {

// Returns the faults to test: what happens, at which point, and on which rank. With
// AddressSanitizer, each fault is tested on only one rank.
std::vector<std::tuple<std::string, std::string, int>> losses() {
  std::vector<std::tuple<std::string, std::string, int>> all = {{"killed", "joined", 0},
                                                                {"killed", "step", 1},
                                                                {"stopped", "joined", 1},
                                                                {"stopped", "step", 0}};
  if (sconce::test::is_sanitized) return all;
  for (int i = 0; i < 4; ++i) {
    const auto [what, where, victim] = all[i];
    all.emplace_back(what, where, 1 - victim);
  }
  return all;
}

}  // namespace

TEST_CASE("after one rank is killed or stopped, the other ranks fail within the timeout",
          "[distributed]") {
  const auto [what, where, victim] = GENERATE(from_range(losses()));
  auto ranks = start_ranks(3, faulty(what, where, victim));
  wait_for(ranks, Seconds(40));
  REQUIRE((what == "killed" ? ranks[victim]->killed_by == SIGKILL : ranks[victim]->stopped));
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    INFO(what << " at " << where << ": rank " << victim);
    // The victim may be killed or stopped after it has joined but before another rank joins.
    check_survivor(
        *ranks[rank], rank, 3,
        "(connecting to the other ranks|all_reduce|all_gather|broadcast) failed: .|joining "
        "the group did not end within 4000 ms",
        when(*ranks[rank], "ended") -
            Seconds(ranks[victim]->changed_at.time_since_epoch()).count());
  }
}

TEST_CASE(
    "init returns only after every rank has connected, so a rank may exit immediately afterward",
    "[distributed]") {
  using namespace sconce::distributed;
  const sconce::test::TempDir folder;
  const std::string file = (folder.path() / "store").string();
  Processes rank_0;
  rank_0.push_back(
      std::make_unique<Process>(worker({"fault", "what=forward", "where=joined", "victim=0",
                                        "rank=0", "world_size=2", "init_method=file://" + file}),
                                Variables{{"RANK", "0"}}));

  const Launch launch{.rank = 1, .world_size = 2, .file = file};
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  const auto store =
      c10::make_intrusive<c10d::PrefixStore>("sconce/0/0", open_store(launch, deadline));
  CHECK(agree_backend(*store, launch, {}, deadline) == "gloo");
  const auto gloo = make_gloo(store, launch, std::chrono::seconds(30));
  wait_for(rank_0, Seconds(1));
  CHECK_FALSE(rank_0[0]->ended());
  connect_all(*store, launch, deadline);
  wait_for(rank_0, Seconds(30));
  CHECK(rank_0[0]->ended());
}

TEST_CASE("after one rank throws in forward, the other ranks fail within the timeout",
          "[distributed]") {
  auto ranks = start_ranks(3, faulty("forward", "step", 1));
  wait_for(ranks, Seconds(40));
  CHECK(ranks[1]->exit_code == 1);
  CHECK_THAT(ranks[1]->err(), ContainsSubstring("forward failed"));
  for (const int rank : {0, 2}) {
    check_survivor(*ranks[rank], rank, 3, "all_reduce failed: .",
                   when(*ranks[rank], "ended") - when(*ranks[1], "ended"));
  }
}

TEST_CASE("all ranks report the same error if one rank has a parameter with a different shape",
          "[distributed]") {
  auto ranks = start_ranks(3, faulty("shape", "", 1));
  wait_for(ranks, Seconds(40));
  for (int rank = 0; rank < 3; ++rank) {
    check_survivor(
        *ranks[rank], rank, 3,
        "comparing the modules failed: expected the same module on every rank, but rank 1 has "
        "parameter 0.weight Float \\[31, 20\\], rank 0 has parameter 0.weight Float "
        "\\[30, 20\\]",
        own_seconds(*ranks[rank]));
  }
}

TEST_CASE(
    "if a rank never starts, or stops before it joins, the other ranks fail within the timeout",
    "[distributed]") {
  const int victim = GENERATE(0, 1);
  const bool stopped = GENERATE(false, true);
  auto ranks = start_ranks(3, faulty("stopped", stopped ? "start" : "", victim));
  if (!stopped) ranks[victim].reset(new Process({"true"}, {}));
  wait_for(ranks, Seconds(40));
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    check_survivor(
        *ranks[rank], rank, 3,
        victim == 0 ? "nothing listens on .* \\(Connection refused\\): rank 0 has not joined"
        : rank == 0 ? "these ranks have not joined: 1"
                    : "these ranks have not joined: 1|the rendezvous store was closed before",
        own_seconds(*ranks[rank]));
  }
}

TEST_CASE("every rank fails within the timeout if the port is already in use", "[distributed]") {
  const sconce::test::Listener taken;  // accepts but never answers, like a stopped store
  Processes ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::make_unique<Process>(faulty("nothing", "", 0),
                                              sconce::test::rank_variables(rank, 2, taken.port())));
  }
  wait_for(ranks, Seconds(40));
  check_survivor(*ranks[0], 0, 2, "cannot listen on 127.0.0.1:", own_seconds(*ranks[0]));
  check_survivor(*ranks[1], 1, 2, "joining the group did not end within", own_seconds(*ranks[1]));
}
