// Runs NCCL collectives on two ranks. The mode selects mismatched calls (wrong), matching calls
// (right), captures that wait for a late rank to join a collective (late), a collective that only
// rank 1 calls before it throws (alone), or calls that deadlock (stuck). Each rank runs the command
// below with RANK, LOCAL_RANK, and WORLD_SIZE set:
//     test-simgpu-collectives FOLDER wrong|right|late|alone|stuck
// FOLDER must be empty, because the ranks find each other there. The program prints how each case
// ends.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>
#include <unistd.h>
#include <sconce/distributed/process_group.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "capture/step_graph.hpp"

namespace {

using sconce::distributed::ProcessGroup;
using sconce::distributed::ReduceOp;
using torch::Tensor;

Tensor ones(const ProcessGroup& group, int64_t count, torch::Dtype type = torch::kFloat) {
  return torch::ones({count}, torch::device(group.device()).dtype(type));
}

// Runs one rank's calls. In the incorrect version, `differs` is true on rank 1.
using Case = std::function<void(const ProcessGroup& group, bool differs)>;

const std::vector<std::pair<std::string, Case>> cases = {
    {"kind",
     [](const ProcessGroup& group, bool differs) {
       if (differs) {
         group.broadcast(ones(group, 100), 0);
       } else {
         group.all_reduce(ones(group, 100));
       }
     }},
    {"count",
     [](const ProcessGroup& group, bool differs) {  // a message in several pieces
       group.all_reduce(ones(group, differs ? 1 << 20 : 100));
     }},
    {"type",
     [](const ProcessGroup& group, bool differs) {
       group.all_reduce(ones(group, 100, differs ? torch::kInt : torch::kFloat));
     }},
    {"reduction",
     [](const ProcessGroup& group, bool differs) {
       group.all_reduce(ones(group, 100), differs ? ReduceOp::max : ReduceOp::sum);
     }},
    {"root", [](const ProcessGroup& group, bool differs) {
       group.broadcast(ones(group, 100), differs ? 1 : 0);
     }}};

ProcessGroup join(const std::string& folder, const std::string& name) {
  return ProcessGroup::init({.backend = "nccl",
                             .init_method = "file://" + folder + "/" + name,
                             .timeout = std::chrono::seconds(60)});
}

void wait_for_file(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

c10::Stream another_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(torch::kCUDA).getStreamFromGlobalPool(device);
}

void wait(const c10::Stream& waiting, const c10::Stream& awaited) {
  c10::Event event(torch::kCUDA);
  event.record(awaited);
  event.block(waiting);
}

// Starts a capture on a stream whose pending work must finish first.
using Capture = std::function<void(const c10::Stream& stream)>;

const std::vector<std::pair<std::string, Capture>> captures = {
    {"begin",
     [](const c10::Stream& stream) {
       const c10::StreamGuard guard(stream);
       const auto graph = sconce::StepGraph::begin({});
       const auto zeros = torch::zeros({100}, stream.device());
       graph->end();
     }},
    {"join", [](const c10::Stream& stream) {
       const auto origin = another_stream(stream.device());
       const c10::StreamGuard guard(origin);
       const auto graph = sconce::StepGraph::begin({});
       const auto zeros = torch::zeros({100}, stream.device());
       wait(stream, origin);
       wait(origin, stream);
       graph->end();
     }}};

// On rank 0, one thread runs a capture on a stream that waits for an exchange, while another thread
// computes. Rank 1 joins the exchange only after rank 0 has finished computing.
void come_late(const ProcessGroup& group, const std::string& sign, const Capture& capture) {
  const auto stream = another_stream(group.device());
  const c10::StreamGuard guard(stream);
  const auto values = ones(group, 100);
  if (group.rank() == 1) wait_for_file(sign);
  group.all_reduce(values);
  if (group.rank() == 1) return;
  std::promise<void> begun;
  auto captured = std::async(std::launch::async, [&] {
    begun.set_value();
    capture(stream);
  });
  begun.get_future().wait();
  // After this delay, the capture should be waiting for rank 1. If the capture is not waiting, the
  // test case cannot detect an error.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const c10::StreamGuard other(another_stream(group.device()));
  ones(group, 100).sum().item<float>();
  std::ofstream(sign).flush();
  captured.get();
}

void run_late(const std::string& folder) {
  const auto group = join(folder, "late");
  group.barrier();
  for (const auto& [name, capture] : captures) {
    come_late(group, folder + "/" + name, capture);
    group.barrier();
    std::printf("%s is done\n", name.c_str());
    std::fflush(stdout);
  }
}

// After the ranks have connected, only rank 1 makes this call. The tensor outlives the group.
void call_alone(const ProcessGroup& group, std::vector<Tensor>& tensors,
                const std::string& folder) {
  group.all_reduce(ones(group, 100));
  if (group.rank() == 1) {
    tensors.push_back(ones(group, 100));
    group.c10d()->allreduce(tensors);
    throw std::runtime_error("rank 1 is wrong");
  }
  // Rank 0 stays alive until the test has seen rank 1 exit, because the other ranks stop waiting as
  // soon as a rank is lost.
  wait_for_file(folder + "/rank_1_has_ended");
}

using Work = c10::intrusive_ptr<c10d::Work>;

// Returns when both ranks have arrived. The group's barrier is not used, because it could be queued
// behind the stuck calls.
void meet(const ProcessGroup& group, const std::string& place) {
  std::ofstream(place + std::to_string(group.rank())).flush();
  wait_for_file(place + std::to_string(1 - group.rank()));
}

// Waits until both ranks arrive, and then waits for the calls with a timeout, like a program whose
// process group has a timeout.
void wait_for_both(const ProcessGroup& group, const std::string& place,
                   const std::vector<Work>& calls) {
  meet(group, place);
  for (const auto& call : calls) call->wait(std::chrono::seconds(2));
}

// 4 MiB is larger than any NCCL buffer.
constexpr int64_t large = 1 << 20;

void send_first(const ProcessGroup& group, const std::string& folder) {
  const int other = 1 - group.rank();
  std::vector<Tensor> sent{ones(group, large)};
  std::vector<Tensor> received{ones(group, large)};
  const auto send = group.c10d()->send(sent, other, 0);
  const auto receive = group.c10d()->recv(received, other, 0);
  wait_for_both(group, folder + "/send_first_", {send, receive});
}

void call_in_opposite_order(const ProcessGroup& group, const std::string& folder) {
  const auto second = join(folder, "second");
  for (const auto* each : {&group, &second}) each->all_reduce(ones(group, 100));
  std::vector<Tensor> tensors{ones(group, 100)};
  std::vector<Tensor> tensors_of_second{ones(group, 200)};
  std::vector<Work> calls;
  for (const bool is_first : {group.rank() == 0, group.rank() == 1}) {
    calls.push_back(is_first ? group.c10d()->allreduce(tensors)
                             : second.c10d()->allreduce(tensors_of_second));
    calls.back()->synchronize();  // on the stream
  }
  wait_for_both(group, folder + "/order_", calls);
}

// Rank 1 arrives after the wait on rank 0 has been reported.
void come_busy(const ProcessGroup& group) {
  group.all_reduce(ones(group, 100));
  if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(7));
  group.all_reduce(ones(group, 100));
}

void receive_more_than_is_sent(const ProcessGroup& group, const std::string& folder) {
  const bool sends = group.rank() == 0;
  std::vector<Tensor> tensors{ones(group, sends ? large : large + 5)};
  const auto c10d = group.c10d();
  const auto call = sends ? c10d->send(tensors, 1, 0) : c10d->recv(tensors, 0, 0);
  wait_for_both(group, folder + "/sizes_", {call});
}

// Creates a group for a single case, because a group is unusable after a failed collective.
void run(const std::string& folder, const std::string& name,
         const std::function<void(const ProcessGroup& group)>& call) {
  std::string line = name + " is done\n";
  try {
    call(join(folder, name));
  } catch (const std::exception& error) {
    line = name + " fails: " + std::string(error.what()).substr(0, 2000) + "\n";
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::strcmp(argv[2], "late") == 0) {
    alarm(60);
    run_late(argv[1]);
    return 0;
  }
  // With these settings, waiting for a failed collective throws the collective's error, and
  // LibTorch's watchdog does not terminate the process.
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 1);
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 1);
  const std::string folder = argv[1];
  if (std::strcmp(argv[2], "alone") == 0) {
    std::vector<Tensor> tensors;
    run(folder, "alone", [&](const auto& group) { call_alone(group, tensors, folder); });
    return 0;
  }
  if (std::strcmp(argv[2], "stuck") == 0) {
    run(folder, "sends", [&](const auto& group) { send_first(group, folder); });
    run(folder, "order", [&](const auto& group) { call_in_opposite_order(group, folder); });
    run(folder, "sizes", [&](const auto& group) { receive_more_than_is_sent(group, folder); });
    run(folder, "busy", [&](const auto& group) { come_busy(group); });
    return 0;
  }
  const bool is_right = std::strcmp(argv[2], "right") == 0;
  for (const auto& each : cases) {
    run(folder, each.first, [&](const auto& group) {
      each.second(group, !is_right && group.rank() == 1);
      group.barrier();
    });
  }
  return 0;
}
