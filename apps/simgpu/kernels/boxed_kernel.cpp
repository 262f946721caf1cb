#include "simgpu/kernels/boxed_kernel.hpp"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "simgpu/kernels/allocator_trace.hpp"
#include "simgpu/kernels/below_autograd.hpp"
#include "simgpu/kernels/call.hpp"
#include "simgpu/kernels/cpu_view.hpp"
#include "simgpu/kernels/random.hpp"
#include "simgpu/kernels/rows.hpp"
#include "simgpu/kernels/tensors_of.hpp"

namespace simgpu {

namespace {

using torch::jit::Stack;

std::optional<Seed> seed_of(const OperatorPlan& plan, const Stack& stack, c10::Device device) {
  if (!plan.is_random) return std::nullopt;
  const auto count = plan.writes.size();
  const auto* arguments = stack.data() + (stack.size() - count);
  const auto* rate = plan.dropout < count ? &arguments[plan.dropout] : nullptr;
  if (rate != nullptr && rate->isDouble() && rate->toDouble() == 0) return std::nullopt;
  if (plan.generator == count) return Seed(std::nullopt, device);
  const auto& value = arguments[plan.generator];
  return Seed(value.isNone() ? std::nullopt : std::optional(value.toGenerator()), device);
}

// A single CPU kernel run, which a graph can store and replay.
struct Run {
  c10::OperatorHandle op;
  const OperatorPlan* plan;
  const std::optional<c10::KernelFunction>* own;
  std::optional<Seed> seed;

  void operator()(Stack& stack) const {
    const BelowAutograd below;
    const CallGenerator generator(seed);
    const auto count = plan->writes.size();
    if (plan->generator < count) stack[stack.size() - count + plan->generator] = call_generator();
    const c10::DispatchKeySet keys(plan->cpu_key);
    if (*own) {
      (*own)->callBoxed(op, keys, &stack);
    } else {
      op.redispatchBoxed(keys, &stack);
    }
  }
};

// `to` is a CPU tensor that shares the GPU tensor's memory.
void copy_result(const at::Tensor& cpu, const at::Tensor& to) {
  if (cpu.strides() == to.strides() && cpu.is_non_overlapping_and_dense()) {
    std::memcpy(to.mutable_data_ptr(), cpu.const_data_ptr(), cpu.nbytes());
  } else {
    to.copy_(cpu);
  }
}

Work writes_of(const char* label, const std::vector<Result>& results) {
  Work work{.label = label, .is_continued = true};
  for (const auto& result : results) add_accesses(work.accesses, result.gpu, true);
  return work;
}

// The destination of a result during a replay.
struct Target {
  int64_t position;
  at::Tensor argument;  // the resized argument if the position is -1
  at::Tensor memory;
};

std::vector<Target> targets_of(const std::vector<Result>& results) {
  std::vector<Target> targets;
  for (const auto& [cpu, gpu, position] : results) {
    targets.push_back({position, position < 0 ? cpu : at::Tensor(), view_on_cpu(gpu, true)});
  }
  return targets;
}

void copy_results(const Stack& stack, size_t returns, const std::vector<Target>& targets) {
  std::vector<at::Tensor> returned;
  for (size_t i = stack.size() - returns; i < stack.size(); ++i) {
    for_tensors(stack[i], [&](const at::Tensor& tensor) { returned.push_back(tensor); });
  }
  for (const auto& [position, argument, memory] : targets) {
    copy_result(position < 0 ? argument : returned.at(static_cast<size_t>(position)), memory);
  }
}

// Each replay runs the kernel again and copies each new result to the memory that the caller
// already uses.
Work replayed(const Run& run, Stack arguments, const CapturedNumbers& numbers, Work work,
              const std::vector<Result>& results) {
  work.run = [run, numbers, again = std::move(arguments), targets = targets_of(results)] {
    for (const auto& number : numbers) number.check(run.plan->label);
    Stack stack = again;
    run(stack);
    copy_results(stack, run.plan->returns, targets);
  };
  return work;
}

void check_host_wait(const Call& call, const Stack& stack, cudaStream_t stream) {
  if (call.waits_for_host(stack) && !wait_for_host(stream)) {
    C10_CUDA_CHECK(cudaErrorStreamCaptureUnsupported);
  }
}

}  // namespace

BoxedKernel::BoxedKernel(const OperatorPlan& plan, std::optional<c10::KernelFunction> own)
    : plan_(plan), own_(std::move(own)) {}

void BoxedKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  trace_allocator();
  Call call(plan_, *stack);
  check_refusals(plan_.refusals, *stack, plan_.writes.size());
  const c10::cuda::CUDAGuard guard(call.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(call.device().index()).stream();
  call.move_indices(*stack);
  check_host_wait(call, *stack, stream);
  const Run run{op, &plan_, &own_, seed_of(plan_, *stack, call.device())};
  const bool captures = is_capturing(stream);
  call.replace_arguments(*stack, captures);
  TORCH_CHECK_NOT_IMPLEMENTED(!captures || !call.has_part_tensors(),
                              "simulated GPUs: ", plan_.label,
                              " of a sparse or nested tensor is not supported in a CUDA graph");
  begin_work(stream, call.work());
  Stack again;
  if (captures) {
    again = Stack(stack->end() - static_cast<std::ptrdiff_t>(plan_.writes.size()), stack->end());
  }
  run(*stack);
  const BelowAutograd below;
  const auto results = call.replace_results(*stack);
  auto made = writes_of(plan_.label, results);
  if (!made.accesses.empty()) begin_work(stream, made);
  for (const auto& [cpu, gpu, position] : results) copy_result(cpu, view_on_cpu(gpu, true));
  if (!captures) return;
  auto& accesses = made.accesses;
  accesses.insert(accesses.end(), call.work().accesses.begin(), call.work().accesses.end());
  record(stream, replayed(run, std::move(again), call.numbers(), std::move(made), results));
}

}  // namespace simgpu
