#pragma once

#include <c10/util/Exception.h>

#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "distributed/rendezvous.hpp"

// LibTorch's Gloo backend with better error messages, which include the rank and the operation.
// DistributedDataParallel's Reducer receives the same messages.
namespace sconce::distributed {

// Runs a function. If the function throws, rethrows the error with `words` prepended to its
// message.
template <class F>
auto naming(const std::string& words, F&& function) {
  try {
    return function();
  } catch (const c10::Error& error) {
    TORCH_CHECK_WITH(DistBackendError, false, words, error.what_without_backtrace());
  } catch (const std::exception& error) {
    TORCH_CHECK_WITH(DistBackendError, false, words, error.what());
  }
}

// Wraps a running collective in order to add the operation and the rank to error messages.
class NamedWork : public c10d::Work {
 public:
  NamedWork(c10::intrusive_ptr<c10d::Work> work, std::string words)
      : work_(std::move(work)), words_(std::move(words)) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  void synchronize() override { work_->synchronize(); }
  bool wait(Milliseconds timeout = kNoTimeout) override {
    return naming(words_, [&] { return work_->wait(timeout); });
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const auto future = work_->getFuture();
    return future->then(
        [words = words_](c10::ivalue::Future& done) {
          return naming(words, [&] { return done.value(); });
        },
        future->elementType());
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::string words_;
};

class Gloo : public c10d::ProcessGroupGloo {
 public:
  Gloo(const Store& store, int rank, int size, c10::intrusive_ptr<Options> options)
      : ProcessGroupGloo(store, rank, size, std::move(options)),
        words_("sconce::distributed::ProcessGroup: rank " + std::to_string(rank) + " of " +
               std::to_string(size) + ": ") {}

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return named("broadcast", [&] { return ProcessGroupGloo::broadcast(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return named("all_reduce", [&] { return ProcessGroupGloo::allreduce(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    return named("all_gather",
                 [&] { return ProcessGroupGloo::allgather(outputs, inputs, options); });
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const c10d::ReduceScatterOptions& options) override {
    return named("reduce_scatter",
                 [&] { return ProcessGroupGloo::reduce_scatter(outputs, inputs, options); });
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return named("barrier", [&] { return ProcessGroupGloo::barrier(options); });
  }

 private:
  template <class F>
  c10::intrusive_ptr<c10d::Work> named(const char* operation, F&& start) {
    const std::string words = words_ + operation + " failed: ";
    return c10::make_intrusive<NamedWork>(naming(words, std::forward<F>(start)), words);
  }

  std::string words_;
};

constexpr auto loopback = "127.0.0.1";

// Returns this machine's address on the route to the rendezvous address. Returns the loopback
// address if the rendezvous address is on this machine or is unknown.
inline std::string address_toward_rank_0(const Launch& launch) {
  if (launch.address.empty() || launch.is_on_one_machine()) return loopback;
  const Endpoint master(launch.address, launch.port);
  return master.is_loopback() ? loopback : master.local_address();
}

// Returns the address on which Gloo listens and from which it connects. Usually, this is the
// address on the route to rank 0. On rank 0's machine, that route may use loopback even though some
// ranks are on other machines. In that case, returns the address on the route to the other ranks,
// whose addresses are in the store.
inline std::string gloo_address(c10d::Store& store, const Launch& launch) {
  std::string own = address_toward_rank_0(launch);
  if (own != loopback || launch.address.empty() || launch.is_on_one_machine()) return own;
  for (const auto& other : announced_values(store, ranks_from(0, launch), "address")) {
    if (other != loopback) return Endpoint(other, launch.port).local_address();
  }
  return own;
}

// Returns the interfaces on which Gloo listens and from which it connects.
inline std::vector<std::shared_ptr<::gloo::transport::Device>> gloo_devices(c10d::Store& store,
                                                                            const Launch& launch) {
  using c10d::ProcessGroupGloo;
  if (const auto names = detail::variable("GLOO_SOCKET_IFNAME")) {
    std::vector<std::shared_ptr<::gloo::transport::Device>> devices;
    std::istringstream list(*names);
    for (std::string name; std::getline(list, name, ',');) {
      devices.push_back(ProcessGroupGloo::createDeviceForInterface(name));
    }
    return devices;
  }
  TORCH_CHECK(!launch.spans_machines() || !launch.address.empty(),
              "expected GLOO_SOCKET_IFNAME to specify the network interface that reaches the other "
              "machines (init_method file:// contains no address), got no interface");
  return {ProcessGroupGloo::createDeviceForHostname(gloo_address(store, launch))};
}

// The store contains the address of every rank.
inline c10::intrusive_ptr<c10d::Backend> make_gloo(const Store& store, const Launch& launch,
                                                   Milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices = gloo_devices(*store, launch);
  options->threads = static_cast<int>(2 * options->devices.size());
  const auto own = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  return c10::make_intrusive<Gloo>(own, launch.rank, launch.world_size, options);
}

}  // namespace sconce::distributed
