#pragma once

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "distributed/launch.hpp"

// These functions let the ranks find each other. The ranks connect to a LibTorch store that all of
// them can reach, and wait until every rank has joined.
namespace sconce::distributed {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline Milliseconds left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
  return std::max(left, Milliseconds(1));  // c10d treats 0 as no timeout
}

// Runs a function that may block forever, and gives up after the timeout. For example, a store
// client blocks while the process that owns the store is stopped, and none of LibTorch's timeouts
// apply. The abandoned thread owns the objects that it uses, exits when its peer exits, and does
// not block other threads.
template <class F>
std::invoke_result_t<F> run_with_timeout(Milliseconds limit, const std::string& what, F function) {
  std::packaged_task<std::invoke_result_t<F>()> task(std::move(function));
  auto result = task.get_future();
  std::thread worker(std::move(task));
  if (result.wait_for(limit) != std::future_status::ready) {
    worker.detach();
    TORCH_CHECK(false, what, " did not end within ", limit.count(), " ms");
  }
  worker.join();
  return result.get();
}

// A host address with a port.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int open(int type) const { return socket(storage.ss_family, type | SOCK_CLOEXEC, 0); }
  bool is_ipv6() const { return storage.ss_family == AF_INET6; }

  bool is_loopback() const {
    if (is_ipv6()) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
      return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }

  // Returns the numeric address without the port.
  std::string host() const {
    char text[NI_MAXHOST] = {};
    const int failed = getnameinfo(raw(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    TORCH_CHECK(failed == 0, "cannot format a numeric address (", gai_strerror(failed), ")");
    return text;
  }
};

// Returns all addresses of a host, with IPv4 addresses first. Gloo cannot connect an IPv4 address
// to an IPv6 address. Listing IPv4 addresses first makes all ranks choose the same address family,
// because each rank chooses the first address that works.
inline std::vector<SocketAddress> resolve(const std::string& host, uint16_t port) {
  const std::string number = std::to_string(port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), number.c_str(), &hints, &found);
  TORCH_CHECK(failed == 0, "expected a resolvable address, got ", host, ":", number, " (",
              gai_strerror(failed), ")");
  std::vector<SocketAddress> addresses;
  for (const auto* each = found; each != nullptr; each = each->ai_next) {
    auto& address = addresses.emplace_back();
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
  }
  freeaddrinfo(found);
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const SocketAddress& each) { return !each.is_ipv6(); });
  return addresses;
}

// Returns whether the host is a numeric address rather than a name.
inline bool is_numeric(const std::string& host) {
  in6_addr address = {};  // also large enough for IPv4
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// A host and port to listen on or connect to, with one or more addresses.
class Endpoint {
 public:
  Endpoint(std::string text, std::vector<SocketAddress> addresses)
      : text_(std::move(text)), addresses_(std::move(addresses)) {}
  Endpoint(const std::string& host, uint16_t port)
      : Endpoint(host + ":" + std::to_string(port), resolve(host, port)) {}

  const std::string& text() const { return text_; }
  size_t num_addresses() const { return addresses_.size(); }
  bool is_loopback() const { return addresses_.front().is_loopback(); }

  // Returns a socket that listens on the first address assigned to this machine.
  int listen() const {
    int error = 0;
    for (const auto& address : addresses_) {
      const int fd = address.open(SOCK_STREAM);
      const int on = 1, off = 0;
      if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        // The IPv6 wildcard address also accepts IPv4 connections.
        if (address.is_ipv6()) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        const bool bound = ::bind(fd, address.raw(), address.length) == 0;
        if (bound && ::listen(fd, SOMAXCONN) == 0) return fd;
      }
      error = errno;
      close(fd);
      if (error == EADDRINUSE) break;  // peers would connect to the other program
    }
    TORCH_CHECK(false, "cannot listen on ", text_, " (", std::strerror(error),
                "); specify a different port with MASTER_PORT or init_method");
  }

  struct Answer {
    std::string host = {};  // an address with a listener; empty if there is none
    int error = 0;          // the error of the last failed address; 0: all timed out
  };

  static constexpr Milliseconds max_attempt_time = std::chrono::seconds(2);

  // Connects to all addresses at the same time, and then closes the connections. If packets to one
  // address are lost, connections to the other addresses must not be delayed. An address that
  // refuses connections must be retried soon.
  Answer ask(Milliseconds patience) const {
    Answer answer;
    std::vector<pollfd> sockets;  // poll skips entries whose fd is -1
    sockets.reserve(addresses_.size());
    const auto fail = [&](pollfd& each, int error) {
      answer.error = error;
      close(each.fd);
      each.fd = -1;
    };
    for (const auto& address : addresses_) {
      const int fd = address.open(SOCK_STREAM | SOCK_NONBLOCK);
      auto& each = sockets.emplace_back(pollfd{.fd = fd, .events = POLLOUT, .revents = 0});
      const bool connecting =
          fd >= 0 && (::connect(fd, address.raw(), address.length) == 0 || errno == EINPROGRESS);
      if (!connecting) fail(each, errno);
    }
    const auto deadline = Clock::now() + std::min(patience, max_attempt_time);
    const auto is_open = [](const pollfd& each) { return each.fd >= 0; };
    while (answer.host.empty() && std::any_of(sockets.begin(), sockets.end(), is_open)) {
      const auto left = static_cast<int>(left_until(deadline).count());
      if (poll(sockets.data(), sockets.size(), left) <= 0) break;
      for (size_t i = 0; i < sockets.size() && answer.host.empty(); ++i) {
        if (sockets[i].revents == 0) continue;
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(sockets[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0) {
          answer.host = addresses_[i].host();
        } else {
          fail(sockets[i], error);
        }
      }
    }
    for (const auto& each : sockets) {
      if (is_open(each)) close(each.fd);
    }
    return answer;
  }

  // Returns this machine's address on the route to the other machine.
  std::string local_address() const {
    for (const auto& address : addresses_) {
      const int fd = address.open(SOCK_DGRAM);  // connecting a UDP socket sends no packets
      SocketAddress own = {.storage = {}, .length = sizeof(sockaddr_storage)};
      auto* raw = reinterpret_cast<sockaddr*>(&own.storage);
      const bool found = fd >= 0 && ::connect(fd, address.raw(), address.length) == 0 &&
                         getsockname(fd, raw, &own.length) == 0;
      close(fd);
      if (found) return own.host();
    }
    TORCH_CHECK(false, "no network interface on this machine can reach ", text_);
  }

 private:
  std::string text_;
  std::vector<SocketAddress> addresses_;
};

// On rank 0's machine, the machine's hostname often resolves to a loopback address. On any other
// machine, no process listens on that loopback address. A rank other than 0 whose local rank is 0
// cannot be on rank 0's machine. A numeric loopback address from the user is accepted, because it
// supports several launchers on one machine.
inline void check_leads_to_rank_0(const Launch& launch, const Endpoint& endpoint) {
  const bool is_intended = launch.address == "localhost" || is_numeric(launch.address);
  const bool elsewhere = launch.spans_machines() && launch.rank > 0 && launch.local_rank == 0;
  TORCH_CHECK(
      is_intended || !elsewhere || !endpoint.is_loopback(),
      "expected an address that reaches rank 0's machine, got ", launch.address,
      ", a loopback address on this machine; use a network interface address of rank 0's machine");
}

// Returns the socket on which rank 0 listens. If other machines are certain to use the same
// address, rank 0 listens only on that address. However, other machines may resolve a name to a
// different address. The name may have several addresses, or it may resolve differently on this
// machine: to 127.0.1.1 (the machine's own hostname) or to localhost (in a pod). In such cases,
// rank 0 listens on all addresses.
inline int listen_for_ranks(const Launch& launch, const Endpoint& named) {
  const bool is_certain = launch.is_on_one_machine() || is_numeric(launch.address) ||
                          (named.num_addresses() == 1 && !named.is_loopback());
  if (is_certain) return named.listen();
  auto all = resolve("::", launch.port);
  all.push_back(resolve("0.0.0.0", launch.port).front());  // used if IPv6 is unavailable
  return Endpoint(named.text(), std::move(all)).listen();
}

// Waits until a listener accepts connections, and returns its address.
inline std::string wait_for_listener(const Endpoint& endpoint, Clock::time_point deadline) {
  int error = ETIMEDOUT;
  while (true) {
    const auto answer = endpoint.ask(left_until(deadline));
    if (!answer.host.empty()) return answer.host;
    if (answer.error != 0) error = answer.error;
    TORCH_CHECK(Clock::now() < deadline, "nothing listens on ", endpoint.text(), " (",
                std::strerror(error), "): rank 0 has not joined");
    std::this_thread::sleep_for(Milliseconds(20));
  }
}

using Store = c10::intrusive_ptr<c10d::Store>;

// Some LibTorch builds, such as the Debian package, do not include libuv and reject the default,
// which uses libuv.
inline Store make_tcp_store(const std::string& host, c10d::TCPStoreOptions options) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    if (message.find("built without libuv") == message.npos) throw;
  }
  options.useLibUV = false;
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

inline Store open_tcp_store(const Launch& launch, Clock::time_point deadline) {
  const Endpoint endpoint(launch.address, launch.port);
  check_leads_to_rank_0(launch, endpoint);
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.waitWorkers = false;
  options.isServer = launch.rank == 0 && !launch.uses_agent_store;
  std::string host = launch.address;
  if (options.isServer) {
    options.masterListenFd = listen_for_ranks(launch, endpoint);
  } else {
    host = wait_for_listener(endpoint, deadline);
  }
  options.timeout = left_until(deadline);
  return make_tcp_store(host, options);
}

inline Store open_store(const Launch& launch, Clock::time_point deadline) {
  if (launch.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  if (launch.file.empty()) return open_tcp_store(launch, deadline);
  return c10::make_intrusive<c10d::FileStore>(launch.file, launch.world_size);
}

inline std::vector<std::string> keys_of(const std::vector<int>& ranks, const std::string& state) {
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(state + "/" + std::to_string(rank));
  return keys;
}

// Returns the values that the given ranks announced together with a state.
inline std::vector<std::string> announced_values(c10d::Store& store, const std::vector<int>& ranks,
                                                 const std::string& state) {
  std::vector<std::string> values;
  for (const auto& bytes : store.multiGet(keys_of(ranks, state))) {
    values.emplace_back(bytes.begin(), bytes.end());
  }
  return values;
}

// Waits until the given ranks reach a state, such as "joined". The error message lists the ranks
// that did not reach this state.
inline void wait_for_ranks(c10d::Store& store, const std::vector<int>& ranks,
                           const std::string& state, Clock::time_point deadline) {
  std::string missing;
  try {
    store.wait(keys_of(ranks, state), left_until(deadline));
    return;
  } catch (const std::exception&) {
  }
  try {
    for (const int rank : ranks) {
      if (store.check(keys_of({rank}, state))) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
  } catch (const std::exception&) {  // rank 0 owned the store and gave up first
    TORCH_CHECK(false, "the rendezvous store was closed before all ranks had ", state);
  }
  TORCH_CHECK(missing.empty(), "these ranks have not ", state, ": ", missing);
}

// Announces to the other ranks the state that this rank has reached, along with a value. Some
// stores do not support empty values.
inline void announce(c10d::Store& store, int rank, const std::string& state,
                     const std::string& value = "1") {
  store.set(keys_of({rank}, state).front(), std::vector<uint8_t>(value.begin(), value.end()));
}

inline std::vector<int> ranks_from(int first, const Launch& launch) {
  std::vector<int> ranks(static_cast<size_t>(launch.world_size - first));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

// Waits until every rank has connected to all other ranks. If a rank returned early, it could close
// connections that other ranks are still waiting for. Rank 0 returns last, because rank 0 may own
// the store.
inline void connect_all(c10d::Store& store, const Launch& launch, Clock::time_point deadline) {
  announce(store, launch.rank, "connected");
  wait_for_ranks(store, ranks_from(0, launch), "connected", deadline);
  if (launch.rank == 0) {
    wait_for_ranks(store, ranks_from(1, launch), "confirmed that all ranks are connected",
                   deadline);
  } else {
    announce(store, launch.rank, "confirmed that all ranks are connected");
  }
}

}  // namespace sconce::distributed
