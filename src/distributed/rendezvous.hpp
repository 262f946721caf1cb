#pragma once

#include <arpa/inet.h>
#include <c10/util/Exception.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "distributed/launch.hpp"

// How the ranks find each other: through a store of LibTorch that all can reach, and by waiting
// until all have joined.
namespace sconce::distributed {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline Milliseconds left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
  return std::max(left, Milliseconds(1));  // c10d takes 0 as no limit
}

// Runs a function that may block forever, and gives up after the limit. A store client blocks like
// this while the process with the store is stopped, and no timeout of LibTorch applies. The
// abandoned thread owns what it uses, ends when its peer does, and blocks nobody.
template <class F>
std::invoke_result_t<F> within(Milliseconds limit, const std::string& what, F function) {
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

// A TCP address to listen on or connect to.
class Endpoint {
 public:
  Endpoint(const std::string& host, uint16_t port) : text_(host + ":" + std::to_string(port)) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    TORCH_CHECK(failed == 0, "expected an address that resolves, got ", text_, " (",
                gai_strerror(failed), ")");
    std::memcpy(&address_, found->ai_addr, found->ai_addrlen);
    length_ = found->ai_addrlen;
    freeaddrinfo(found);
  }

  const std::string& text() const { return text_; }
  bool is_ipv6() const { return address_.ss_family == AF_INET6; }

  bool is_loopback() const {
    if (is_ipv6()) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address_);
      return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address_);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }

  // Returns a socket that listens only on this address.
  int listen() const {
    const int fd = open(SOCK_STREAM);
    const int on = 1;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || ::bind(fd, raw(), length_) != 0 || ::listen(fd, SOMAXCONN) != 0) {
      const int error = errno;
      close(fd);
      TORCH_CHECK(false, "cannot listen on ", text_, " (", std::strerror(error),
                  "); MASTER_PORT or init_method can name another port");
    }
    return fd;
  }

  static constexpr Milliseconds longest_poll = std::chrono::hours(1);  // poll counts by an int

  // Returns whether something listens at the address.
  bool answers(Milliseconds patience) const {
    const int fd = open(SOCK_STREAM | SOCK_NONBLOCK);
    bool connected = ::connect(fd, raw(), length_) == 0;
    if (!connected && errno == EINPROGRESS) {
      pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
      int error = 0;
      socklen_t size = sizeof error;
      connected = poll(&wait, 1, static_cast<int>(std::min(patience, longest_poll).count())) == 1 &&
                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    close(fd);
    return connected;
  }

  // Returns the address of this machine from which the other one is reached.
  std::string own_side() const {
    const int fd = open(SOCK_DGRAM);  // connecting it sends nothing
    sockaddr_storage own = {};
    socklen_t size = sizeof own;
    char host[NI_MAXHOST] = {};
    auto* address = reinterpret_cast<sockaddr*>(&own);
    const bool found =
        ::connect(fd, raw(), length_) == 0 && getsockname(fd, address, &size) == 0 &&
        getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0;
    close(fd);
    TORCH_CHECK(found, "no interface of this machine leads to ", text_);
    return host;
  }

 private:
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&address_); }
  int open(int type) const { return socket(address_.ss_family, type | SOCK_CLOEXEC, 0); }

  std::string text_;
  sockaddr_storage address_ = {};
  socklen_t length_ = 0;
};

// A machine's own name often resolves to a loopback address, which other machines cannot reach. A
// literal loopback address is intended: several launchers on one machine.
inline void check_reachable(const Launch& launch, const Endpoint& endpoint) {
  const bool meant = launch.address == "localhost" || launch.address == "::1" ||
                     launch.address.starts_with("127.");
  TORCH_CHECK(meant || !launch.spans_machines() || !endpoint.is_loopback(),
              "expected an address that other machines reach, got ", launch.address,
              ", which is a loopback address here; use the address of a network interface");
}

using Store = c10::intrusive_ptr<c10d::Store>;

inline Store open_tcp_store(const Launch& launch, Clock::time_point deadline) {
  const Endpoint endpoint(launch.address, launch.port);
  check_reachable(launch, endpoint);
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.waitWorkers = false;
  options.isServer = launch.rank == 0 && !launch.others_own_store;
  if (options.isServer) {
    options.masterListenFd = endpoint.listen();
  } else {
    while (!endpoint.answers(left_until(deadline))) {
      TORCH_CHECK(Clock::now() < deadline, "nobody listens on ", endpoint.text(),
                  ": rank 0 has not joined");
      std::this_thread::sleep_for(Milliseconds(20));
    }
  }
  options.timeout = left_until(deadline);
  return c10::make_intrusive<c10d::TCPStore>(launch.address, options);
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

// Waits until these ranks are in a state, such as "joined", and names those that are not.
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
    TORCH_CHECK(false, "the store where the ranks meet was closed before all had ", state);
  }
  TORCH_CHECK(missing.empty(), "these ranks have not ", state, ": ", missing);
}

// Tells the others that this rank is in a state, and a value. Some stores do not keep empty values.
inline void announce(c10d::Store& store, int rank, const std::string& state,
                     const std::string& value = "1") {
  store.set(keys_of({rank}, state).front(), std::vector<uint8_t>(value.begin(), value.end()));
}

inline std::vector<int> ranks_from(int first, const Launch& launch) {
  std::vector<int> ranks(static_cast<size_t>(launch.world_size - first));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

// Waits until every rank has connected to the others. A rank that left before would close
// connections that others still wait for. Rank 0, which may own the store, returns last.
inline void connect_all(c10d::Store& store, const Launch& launch, Clock::time_point deadline) {
  announce(store, launch.rank, "connected");
  wait_for_ranks(store, ranks_from(0, launch), "connected", deadline);
  if (launch.rank == 0) {
    wait_for_ranks(store, ranks_from(1, launch), "seen that all have connected", deadline);
  } else {
    announce(store, launch.rank, "seen that all have connected");
  }
}

}  // namespace sconce::distributed
