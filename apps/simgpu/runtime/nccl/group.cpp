#include "simgpu/runtime/nccl/group.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "simgpu/runtime/nccl/exchange.hpp"
#include "simgpu/runtime/thread_work.hpp"

namespace simgpu::nccl {

namespace {

// The maximum time that a call waits for the other ranks. After this time, the communicator's
// thread takes over the exchange, so that c10d can apply its timeout to the call and the program
// can perform the action that another rank is waiting for.
constexpr auto patience = std::chrono::milliseconds(100);

struct Group {
  int depth = 0;
  std::vector<Call> calls;
  std::vector<std::shared_ptr<Communicator>> joining;
};

thread_local Group current_group;

// Makes the communicator's GPU the current device, because a null stream refers to that GPU's
// default stream.
class OnDevice {
 public:
  explicit OnDevice(const Communicator& communicator) {
    cudaGetDevice(&former_);
    cudaSetDevice(communicator.device());
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaSetDevice(former_); }

 private:
  int former_ = 0;
};

// The calls in a group that use the same communicator. These calls run as a single job.
struct Batch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Operation> operations = {};
  std::set<cudaStream_t> streams = {};
  std::vector<WorkBefore> before = {};
  std::shared_future<void> done = {};

  std::shared_future<void> submit() const {
    std::vector<Operation> on_the_host;
    std::transform(operations.begin(), operations.end(), std::back_inserter(on_the_host), on_host);
    return communicator->submit(operations.front().label, [on_the_host = std::move(on_the_host),
                                                           first = before](Peers& peers) {
      peers.begin(Activity::queued, describe(on_the_host.front()));
      for (const auto& work : first) finish(work, [&] { peers.check_aborted(); });
      run_operations(peers, on_the_host);
    });
  }

  std::vector<Access> accesses() const {
    std::vector<Access> all;
    for (const auto& operation : operations) {
      const auto used = accesses_of(operation, communicator->rank(), communicator->ranks());
      all.insert(all.end(), used.begin(), used.end());
    }
    return all;
  }
};

WorkBefore begin_on_stream(const Call& call) {
  const auto& communicator = *call.communicator;
  communicator.check();
  const OnDevice device(communicator);
  return begin_work_of_thread(
      call.stream, {call.operation.label,
                    accesses_of(call.operation, communicator.rank(), communicator.ranks())});
}

std::vector<Batch> begin_batches(const std::vector<Call>& calls) {
  std::vector<Batch> batches;
  for (const auto& call : calls) {
    const auto before = begin_on_stream(call);
    auto batch = std::find_if(batches.begin(), batches.end(),
                              [&](const Batch& b) { return b.communicator == call.communicator; });
    if (batch == batches.end()) batch = batches.insert(batch, Batch{call.communicator});
    batch->operations.push_back(call.operation);
    batch->streams.insert(call.stream);
    batch->before.push_back(before);
  }
  return batches;
}

// Each replay exchanges data again, so all ranks must capture the operations and replay them.
void keep_for_replays(const Batch& batch, cudaStream_t stream) {
  record(stream, {batch.operations.front().label, batch.accesses(),
                  [batch] { batch.communicator->finish(batch.submit()); }});
}

void settle(const Batch& batch, std::chrono::steady_clock::time_point deadline) {
  const OnDevice device(*batch.communicator);
  const auto capturing = std::find_if(batch.streams.begin(), batch.streams.end(), is_capturing);
  if (capturing != batch.streams.end()) {
    batch.communicator->finish(batch.done);
    keep_for_replays(batch, *capturing);
  } else if (batch.done.wait_until(deadline) != std::future_status::ready) {
    batch.communicator->check();
    for (auto* stream : batch.streams) stream_wait(stream, batch.done);
  }
}

void launch(const std::vector<Call>& calls) {
  auto batches = begin_batches(calls);
  for (auto& batch : batches) batch.done = batch.submit();
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (const auto& batch : batches) settle(batch, deadline);
}

}  // namespace

void begin_group() {
  ++current_group.depth;
}

void end_group() {
  if (current_group.depth == 0)
    throw Failure(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--current_group.depth > 0) return;
  const auto ended = std::exchange(current_group, {});
  for (const auto& communicator : ended.joining) communicator->connect();
  launch(ended.calls);
}

void start(Call call) {
  if (current_group.depth > 0) {
    current_group.calls.push_back(std::move(call));
  } else {
    launch({std::move(call)});
  }
}

void connect(const std::shared_ptr<Communicator>& communicator) {
  if (current_group.depth > 0) {
    current_group.joining.push_back(communicator);
  } else {
    communicator->connect();
  }
}

}  // namespace simgpu::nccl
