// Runs programs with mistakes that cause failures on a GPU, or runs the corrected versions:
//     test-simgpu-faults NAME[,NAME]... wrong|right
// The program prints the computed results. The tests run the program on simulated GPUs.
#include <ATen/cuda/Sleep.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "capture/step_graph.hpp"

namespace {

using c10::Event;
using c10::Stream;
using c10::StreamGuard;
using torch::Tensor;

constexpr int64_t batches = 8;
constexpr int64_t rows = 1000;

Stream current_stream(c10::DeviceIndex device = 0) {
  return c10::impl::VirtualGuardImpl(torch::kCUDA).getStream(torch::Device(torch::kCUDA, device));
}

Stream another_stream() {
  return c10::impl::VirtualGuardImpl(torch::kCUDA)
      .getStreamFromGlobalPool(torch::Device(torch::kCUDA, 0));
}

void wait(const Stream& waiting, const Stream& awaited) {
  Event event(torch::kCUDA);
  event.record(awaited);
  event.block(waiting);
}

// Captures the step's work on the current stream and returns the graph.
template <class Step>
std::unique_ptr<sconce::StepGraph> graph_of(const Step& step) {
  auto graph = sconce::StepGraph::begin({});
  step();
  graph->end();
  return graph;
}

// Runs a loop that copies the next batch on a separate stream. The incorrect version uses the batch
// before the copy has finished.
void prefetch(bool is_right) {
  const auto compute = current_stream();
  const auto copy = another_stream();
  auto sum = torch::zeros({}, torch::kCUDA);
  for (int64_t i = 0; i < batches; ++i) {
    const auto batch = torch::full({rows}, static_cast<float>(i)).pin_memory();
    Tensor moved;
    {
      const StreamGuard guard(copy);
      moved = batch.to(torch::kCUDA, /*non_blocking=*/true);
    }
    if (is_right) wait(compute, copy);
    moved.record_stream(compute);
    sum += moved.sum();
  }
  std::cout << sum.item<float>() << '\n';
}

// Catches the prefetch error, as a program that continues after a failure would.
void caught(bool is_right) {
  try {
    prefetch(is_right);
  } catch (const std::exception&) {
    std::cout << "caught\n";
  }
}

// Reads GPU memory directly through its address.
void host_read(bool is_right) {
  const auto ones = torch::ones({rows}, torch::kCUDA);
  const auto readable = is_right ? ones.cpu() : ones;
  std::cout << readable.const_data_ptr<float>()[0] << '\n';
}

// Writes to GPU memory directly through its address.
void host_write(bool is_right) {
  auto zeros = torch::zeros({rows}, torch::kCUDA);
  if (is_right) {
    zeros.fill_(1);
  } else {
    zeros.mutable_data_ptr<float>()[0] = 1;
  }
  std::cout << zeros[0].item<float>() << '\n';
}

// Runs an Adam step with the step count stored on the CPU.
void step_count(bool is_right) {
  const auto parameter = torch::ones({rows}, torch::kCUDA);
  const auto gradient = torch::ones_like(parameter);
  const auto average = torch::zeros_like(parameter);
  const auto squares = torch::zeros_like(parameter);
  const auto step = torch::ones({}, is_right ? torch::kCUDA : torch::kCPU);
  at::_fused_adam_({parameter}, {gradient}, {average}, {squares}, {}, {step}, /*lr=*/0.5,
                   /*beta1=*/0.9, /*beta2=*/0.999, /*weight_decay=*/0, /*eps=*/0,
                   /*amsgrad=*/false, /*maximize=*/false);
  std::cout << parameter[0].item<float>() << '\n';
}

// Two threads write to the same tensor, each on a separate stream.
void two_threads(bool is_right) {
  auto shared = torch::zeros({rows}, torch::kCUDA);
  current_stream().synchronize();
  Event first_is_done(torch::kCUDA);
  std::async(std::launch::async, [&] {
    const StreamGuard guard(another_stream());
    shared.add_(1);
    first_is_done.record(current_stream());
  }).get();
  std::async(std::launch::async, [&] {
    const auto stream = another_stream();
    const StreamGuard guard(stream);
    if (is_right) first_is_done.block(stream);
    shared.add_(1);
    stream.synchronize();
  }).get();
  std::cout << shared[0].item<float>() << '\n';
}

// Each of two streams writes to two adjacent columns of a matrix. In the incorrect version, the two
// column ranges overlap by one column.
void columns(bool is_right) {
  const auto matrix = torch::zeros({rows, 4}, torch::kCUDA);
  current_stream().synchronize();
  for (const int64_t first : {0, is_right ? 2 : 1}) {
    const auto stream = another_stream();
    const StreamGuard guard(stream);
    matrix.narrow(1, first, 2).fill_(1);
  }
  c10::impl::VirtualGuardImpl(torch::kCUDA).synchronizeDevice(0);
  std::cout << matrix.sum().item<float>() << '\n';
}

// Two streams write to interleaved parts of a four-dimensional block. The written elements overlap
// only if the two channel ranges overlap.
void channels(bool is_right) {
  const auto images = torch::zeros({2, 4, 6, 10}, torch::kCUDA);
  current_stream().synchronize();
  for (const int64_t first : {0, is_right ? 2 : 1}) {
    const auto stream = another_stream();
    const StreamGuard guard(stream);
    images.narrow(1, first, 2).slice(2, 0, 6, 2).narrow(3, 1, 5).transpose(0, 3).fill_(1);
  }
  c10::impl::VirtualGuardImpl(torch::kCUDA).synchronizeDevice(0);
  std::cout << images.sum().item<float>() << '\n';
}

// Frees a tensor while another stream is still reading it, and returns the values that the other
// stream read.
Tensor read_and_free(bool is_right) {
  const auto compute = current_stream();
  const auto copy = another_stream();
  auto result = torch::zeros({rows}).pin_memory();
  {
    Tensor moved;
    {
      const StreamGuard guard(copy);
      moved = torch::ones({rows}, torch::kCUDA);
    }
    wait(compute, copy);
    if (is_right) moved.record_stream(compute);
    result.copy_(moved, /*non_blocking=*/true);
  }
  compute.synchronize();
  return result;
}

void record_stream(bool is_right) {
  std::cout << read_and_free(is_right).to(torch::kCUDA).mean().item<float>() << '\n';
}

// Frees a tensor while another stream is still reading it. In the correct version, the stream that
// reuses the memory waits before writing to it.
void reuse(bool is_right) {
  const auto compute = current_stream();
  const auto gather = another_stream();
  const auto result = torch::zeros({rows}).pin_memory();
  {
    Tensor gathered;
    {
      const StreamGuard guard(gather);
      gathered = torch::ones({rows}, torch::kCUDA);
    }
    wait(compute, gather);
    result.copy_(gathered, /*non_blocking=*/true);
  }
  if (is_right) wait(gather, compute);
  {
    const StreamGuard guard(gather);
    torch::zeros({rows}, torch::kCUDA);
  }
  compute.synchronize();
  std::cout << result.mean().item<float>() << '\n';
}

// As the program's last GPU work, frees a tensor while another stream is still reading it.
void freed_last(bool is_right) {
  std::cout << read_and_free(is_right).mean().item<float>() << '\n';
}

// Writes to pinned memory while a copy is reading it.
void pinned_write(bool is_right) {
  auto source = torch::ones({rows}).pin_memory();
  const auto copied = source.to(torch::kCUDA, /*non_blocking=*/true);
  if (is_right) current_stream().synchronize();
  source.fill_(2);
  std::cout << copied[0].item<float>() << '\n';
}

// Reads the result of a captured operation during the capture, before any replay has computed it.
// The host also reads pinned memory that a captured copy will write to, and another stream copies
// to a parameter that a captured operation modifies.
void capture(bool is_right) {
  const auto ones = torch::ones({rows}, torch::kCUDA);
  const auto parameter = torch::zeros({rows}, torch::kCUDA);
  const auto seen = torch::zeros({rows}, torch::kCUDA);
  const auto pinned = torch::zeros({rows}).pin_memory();
  const auto source = torch::ones({rows}).pin_memory();
  current_stream().synchronize();
  const auto captured = another_stream();
  const auto other = current_stream();
  const StreamGuard guard(captured);
  const auto graph = sconce::StepGraph::begin({});
  const auto doubled = ones * 2;
  parameter.fill_(5);
  pinned.copy_(parameter, /*non_blocking=*/true);
  const auto early = pinned[0].item<float>();
  {
    const StreamGuard not_captured(other);
    if (!is_right) seen.copy_(doubled);
    parameter.copy_(source, /*non_blocking=*/true);
  }
  const auto sum = doubled + parameter;
  other.synchronize();
  graph->end();
  std::cout << parameter.mean().item<float>() << ' ' << early << ' ';
  graph->replay();
  if (is_right) seen.copy_(doubled);
  std::cout << seen.mean().item<float>() << ' ' << sum.mean().item<float>() << '\n';
}

// Reads pinned memory that is the destination of a GPU copy, with or without waiting for the copy.
// The copy covers only part of the memory.
void early_read(bool is_right) {
  const auto results = torch::zeros({rows}).pin_memory();
  results.narrow(0, 10, 10).copy_(torch::ones({10}, torch::kCUDA), /*non_blocking=*/true);
  const auto beside = results[0].item<float>();
  results.narrow(0, 10, 10).copy_(torch::ones({10}, torch::kCUDA), /*non_blocking=*/true);
  if (is_right) current_stream().synchronize();
  std::cout << beside << ' ' << results[10].item<float>() << '\n';
}

// Two streams copy to the same pages of pinned memory. In the correct version, the second copy
// waits for the first copy.
void two_copies(bool is_right) {
  const auto results = torch::zeros({8 * rows}).pin_memory();
  const auto ones = torch::ones({8 * rows}, torch::kCUDA);
  const auto second = another_stream();
  wait(second, current_stream());
  results.copy_(ones, /*non_blocking=*/true);
  if (is_right) wait(second, current_stream());
  {
    const StreamGuard guard(second);
    results.narrow(0, 0, 10).copy_(ones.narrow(0, 0, 10), /*non_blocking=*/true);
  }
  second.synchronize();
  current_stream().synchronize();
  std::cout << results.mean().item<float>() << '\n';
}

// Writes to pinned memory while a copy from it waits for a slow kernel, with and without a graph.
void sleep(bool is_right) {
  auto source = torch::ones({rows}).pin_memory();
  const auto stream = another_stream();
  const StreamGuard guard(stream);
  const auto graph = sconce::StepGraph::begin({});
  at::cuda::sleep(1000);
  graph->end();
  graph->replay();
  stream.synchronize();
  const bool is_idle = stream.query();
  const auto copied = source.to(torch::kCUDA, /*non_blocking=*/true);
  if (is_right) stream.synchronize();
  at::cuda::sleep(1000);
  const bool is_busy = !stream.query();
  source.fill_(2);
  std::cout << is_idle << ' ' << is_busy << ' ' << copied[0].item<float>() << '\n';
}

// Changes a scalar tensor between two replays. If the scalar tensor is on the CPU, the graph keeps
// the value from the capture. If the scalar tensor is on the GPU, the graph reads the new value.
// The dtype of the second result shows whether 0.5 is treated as a C++ scalar.
void factor(bool is_right) {
  const StreamGuard guard(another_stream());
  auto sum = torch::zeros({rows}, torch::kCUDA);
  const auto counts = torch::ones({rows}, torch::dtype(torch::kInt).device(torch::kCUDA));
  auto number = torch::full({}, 2.0, torch::Device(is_right ? torch::kCUDA : torch::kCPU));
  Tensor halves;
  const auto graph = graph_of([&] {
    sum.add_(number);
    halves = counts + 0.5;
  });
  graph->replay();
  number.fill_(5);
  graph->replay();
  std::cout << sum.mean().item<float>() << ' ' << halves.dtype() << '\n';
}

// Captures an indexed read with indices on the CPU or on the GPU. LibTorch copies CPU indices to
// the GPU, which is not allowed during capture.
void cpu_index(bool is_right) {
  const StreamGuard guard(another_stream());
  const auto values = torch::ones({rows}, torch::kCUDA);
  const auto first = torch::arange(10, torch::Device(is_right ? torch::kCUDA : torch::kCPU));
  Tensor read;
  const auto graph = graph_of([&] { read = values.index({first}); });
  graph->replay();
  std::cout << read.sum().item<float>() << '\n';
}

// Captures an indexed write of a scalar. LibTorch also copies a CPU scalar to the GPU, which is not
// allowed during capture.
void cpu_value(bool is_right) {
  const StreamGuard guard(another_stream());
  auto values = torch::ones({rows}, torch::kCUDA);
  const auto first = torch::arange(10, torch::kCUDA);
  const auto zero = torch::zeros({}, torch::Device(is_right ? torch::kCUDA : torch::kCPU));
  const auto graph = graph_of([&] { torch::index_put_(values, {first}, zero); });
  graph->replay();
  std::cout << values.sum().item<float>() << '\n';
}

// Captures a masked write of a one-element tensor. LibTorch supports this operation if the
// one-element tensor is on the CPU. If the one-element tensor is on the GPU, LibTorch computes the
// mask positions on the host.
void mask(bool is_right) {
  const StreamGuard guard(another_stream());
  auto values = torch::ones({rows}, torch::kCUDA);
  const auto first = torch::arange(rows, torch::kCUDA).lt(10);
  const auto zeros = torch::zeros({1}, torch::Device(is_right ? torch::kCPU : torch::kCUDA));
  const auto graph = graph_of([&] { torch::index_put_(values, {first}, zeros); });
  graph->replay();
  std::cout << values.sum().item<float>() << '\n';
}

// Captures torch::searchsorted with or without a sorter. If a sorter is passed, the host reads the
// sorter's minimum and maximum.
void sorter(bool is_right) {
  const StreamGuard guard(another_stream());
  const auto values = torch::arange(rows, torch::kCUDA);
  const std::optional<Tensor> order = is_right ? std::optional<Tensor>() : values.clone();
  Tensor places;
  const auto graph = graph_of([&] {
    places = torch::searchsorted(values, values, /*out_int32=*/false, /*right=*/false,
                                 /*side=*/std::nullopt, order);
  });
  graph->replay();
  std::cout << places[7].item<int64_t>() << '\n';
}

// Indexes a GPU tensor with a mask and indices on the CPU. LibTorch copies the mask positions from
// pinned memory, but it copies the indices synchronously. LibTorch makes neither copy if the
// indices are on the GPU.
void copied_indices(bool is_right) {
  const auto values = torch::ones({rows, 2}, torch::kCUDA);
  const auto first = is_right ? torch::arange(10, torch::kCUDA) : torch::arange(rows).lt(10);
  const auto column = torch::zeros({1}, torch::dtype(torch::kLong).device(first.device()));
  std::cout << values.index({first, column}).sizes() << '\n';
}

// Fills the same pinned buffer for each batch, possibly while the previous batch is still being
// copied from it. The stream does other work between the copies, so the results can be correct
// despite the mistake. The results are copied back into the same buffer.
void pinned_buffer(bool is_right) {
  const auto buffer = torch::zeros({rows}).pin_memory();
  auto sum = torch::zeros({rows}, torch::kCUDA);
  Event is_copied(torch::kCUDA);
  for (int64_t i = 0; i < batches; ++i) {
    if (is_right && i % 2 == 1) is_copied.synchronize();
    while (is_right && i % 2 == 0 && !is_copied.query()) continue;
    buffer.fill_(static_cast<double>(i));
    sum += buffer.to(torch::kCUDA, /*non_blocking=*/true);
    is_copied.record(current_stream());
  }
  buffer.copy_(sum, /*non_blocking=*/true);
  const auto again = buffer.to(torch::kCUDA, /*non_blocking=*/true);
  current_stream().synchronize();
  std::cout << buffer[0].item<float>() << ' ' << again[0].item<float>() << '\n';
}

// Records one GPU's event on another GPU's stream.
void event_of_another_gpu(bool is_right) {
  Event event(torch::kCUDA);
  event.record(current_stream(0));
  event.record(current_stream(is_right ? 0 : 1));
  std::cout << "recorded\n";
}

// Requests more memory than a GPU has available.
void out_of_memory(bool is_right) {
  const int64_t gib = int64_t{1} << 30;
  const auto bytes = torch::empty({is_right ? 1 : 64 * gib},
                                  torch::TensorOptions(torch::kCUDA).dtype(torch::kByte));
  std::cout << bytes.numel() << '\n';
}

const std::map<std::string, std::function<void(bool)>> faults = {
    {"prefetch", prefetch},
    {"host_read", host_read},
    {"host_write", host_write},
    {"step_count", step_count},
    {"two_threads", two_threads},
    {"record_stream", record_stream},
    {"pinned_write", pinned_write},
    {"pinned_buffer", pinned_buffer},
    {"event_of_another_gpu", event_of_another_gpu},
    {"out_of_memory", out_of_memory},
    {"columns", columns},
    {"channels", channels},
    {"capture", capture},
    {"sleep", sleep},
    {"caught", caught},
    {"freed_last", freed_last},
    {"reuse", reuse},
    {"early_read", early_read},
    {"two_copies", two_copies},
    {"factor", factor},
    {"cpu_index", cpu_index},
    {"cpu_value", cpu_value},
    {"mask", mask},
    {"sorter", sorter},
    {"copied_indices", copied_indices}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::istringstream names(argv[1]);
  try {
    for (std::string name; std::getline(names, name, ',');) {
      faults.at(name)(std::strcmp(argv[2], "right") == 0);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
