// Anyone who can reach a training run's ports can connect to them and send arbitrary bytes. Bytes
// from clients other than the ranks must not affect the run.
#include <poll.h>

#include <cstring>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "support/processes.hpp"
#include "support/wait_until.hpp"

using sconce::test::contents;
using sconce::test::Process;
using sconce::test::Processes;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

// Returns how many malformed connections the test makes to each port. A manual run uses 10,000 with
// `ulimit -n` set to 20,000, because Gloo keeps many of them open.
int connections() {
  const char* number = std::getenv("SCONCE_MALFORMED_CONNECTIONS");
  return number == nullptr ? 100 : std::stoi(number);
}

// Returns the inode numbers of the process's open sockets.
std::set<std::string> sockets_of(int process) {
  std::set<std::string> numbers;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:[")) numbers.insert(target.substr(8, target.size() - 9));
  }
  return numbers;
}

// Returns the ports on which the process listens.
std::set<uint16_t> ports_of(int process) {
  const auto sockets = sockets_of(process);
  std::set<uint16_t> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    for (std::getline(lines, line); std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, socket;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> socket;
      if (state != "0A" || !sockets.contains(socket)) continue;
      ports.insert(
          static_cast<uint16_t>(std::stoi(local.substr(local.find(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// Returns the first bytes that a TCPStore client sends, followed by a request to set a key of the
// given length.
std::string set_of_store(uint64_t length) {
  return '\0' + bytes_of(uint32_t{0x3C85F7CE}) + '\1' + bytes_of(length);
}

std::string malformed(std::mt19937& random) {
  std::string noise(1 + random() % 300, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  switch (random() % 6) {
    case 0:
      return "";
    case 1:
      return noise;
    case 2:
      return "GET / HTTP/1.1\r\n\r\n";
    case 3:
      return set_of_store(8) + "half";
    case 4:
      return set_of_store(uint64_t{1} << 62) + noise;
    default:
      return noise.substr(0, 4);  // the first half of a number
  }
}

// Sends the bytes and then closes the connection. If `resets` is true, resets the connection
// instead of closing it normally.
void connect_once(uint16_t port, const std::string& bytes, bool resets) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  const timeval patience = {.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  if (resets) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (connected) std::ignore = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::close(fd);
  INFO("port " << port << ": " << std::strerror(errno));
  CHECK(connected);
}

void disturb(const std::set<uint16_t>& ports, std::mt19937& random) {
  for (int i = 0; i < connections(); ++i) {
    for (const uint16_t port : ports) connect_once(port, malformed(random), random() % 2 == 0);
  }
}

// Removes the reported speed from a run's output.
std::string without_speed(const std::string& text) {
  return std::regex_replace(text, std::regex("\n[0-9.]+ examples/sec"), "");
}

struct TwoRanks {
  std::string printed;
  std::string weights;
};

// Trains with two processes. If `is_disturbed` is true, malformed connections are made to the
// rendezvous port before the ranks meet and to every port during training.
TwoRanks trained_by_two(bool is_disturbed) {
  const TempDir folder;
  const std::string port = sconce::test::free_port();
  const auto start = [&](int rank) {
    return std::make_unique<Process>(
        std::vector<std::string>{
            "sh", "-c",
            "exec " + sconce::test::train_command(
                          "--model mlp --device cpu --parallel distributed --timeout 60 --epochs " +
                          std::to_string(30 + connections() / 10) + " --out " +
                          (folder.path() / "out").string())},
        sconce::test::rank_variables(rank, 2, port));
  };
  std::mt19937 random(1);
  Processes ranks;
  ranks.push_back(start(0));
  if (is_disturbed) {
    sconce::test::wait_until([&] { return !ports_of(ranks[0]->id()).empty(); });
    disturb(ports_of(ranks[0]->id()), random);
  }
  ranks.push_back(start(1));
  if (is_disturbed) {
    sconce::test::wait_until([&] { return ranks[0]->out().find("epoch 2/") != std::string::npos; });
    auto ports = ports_of(ranks[0]->id());
    ports.merge(ports_of(ranks[1]->id()));
    CHECK(ports.size() == 3);  // the store port and one Gloo port per rank
    disturb(ports, random);
    ranks[0]->poll();
    CHECK_FALSE(ranks[0]->ended());
  }
  sconce::test::wait_for(ranks, sconce::test::Seconds(300));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    CHECK(rank->exit_code == 0);
  }
  return {without_speed(ranks[0]->out()), contents(folder.path() / "out/model.safetensors")};
}

}  // namespace

TEST_CASE("malformed connections to a run's ports do not change the run's output or weights",
          "[distributed]") {
  const TwoRanks alone = trained_by_two(false), disturbed = trained_by_two(true);
  CHECK(disturbed.printed == alone.printed);
  REQUIRE_FALSE(alone.weights.empty());
  CHECK((disturbed.weights == alone.weights));
}
