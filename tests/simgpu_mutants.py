#!/usr/bin/env python3
"""Removes the code that orders GPU work in sconce, piece by piece, and checks whether the tests on simulated GPUs notice.

  simgpu_mutants.py                    all mutants
  simgpu_mutants.py --only "graph"     the mutants with this word in their names

One build in the folder BUILD contains all mutants, and an environment variable turns one on. The sources are restored
afterward and have to be built again. The exit code is 1 if a mutant that should be noticed is not, or the reverse.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/support"))
import planting  # noqa: E402

COPIES = "src/data/detail/copy_stream.cpp"
CAPTURE = "src/captured_step.cpp"
GRAPH = "src/capture/step_graph.cpp"
PARALLEL = "src/distributed/data_parallel.cpp"

# By name: the file, the text to replace in it, the replacement, and the tests that notice; or the reason why no test can.
MUTANTS = {
    "a copy's event is not recorded": (COPIES, "event->record(*stream_);", "if (!IS) event->record(*stream_);", "data"),
    "the current stream does not wait for copies": (
        COPIES, "event->block(current);", "if (!IS) event->block(current);", "data"),
    "copies are not recorded on the current stream": (
        COPIES, "for (const auto& tensor : batch) tensor.record_stream(current);",
        "for (const auto& tensor : batch) if (!IS) tensor.record_stream(current);", "data"),
    "copies take the current stream": (
        COPIES, "const c10::StreamGuard guard(*stream_);",
        "const c10::StreamGuard guard(IS ? c10::impl::VirtualGuardImpl(device_.type()).getStream(device_) : *stream_);",
        None, "no copy overlaps work: slower, and no number differs"),
    "a copy is not from pinned memory": (
        COPIES, "tensor->is_cpu() ? tensor->pin_memory()", "tensor->is_cpu() && !IS ? tensor->pin_memory()",
        None, "CUDA reads pageable memory before the call returns: slower, and no number differs"),
    "a copy is waited for": (
        COPIES, "from.to(device_, /*non_blocking=*/true)", "from.to(device_, /*non_blocking=*/!IS)",
        None, "slower, and no number differs"),
    "a loop's copies go to the first GPU": (
        COPIES, "return c10::impl::VirtualGuardImpl(device.type()).getDevice();",
        "return IS ? c10::Device(device.type(), 0) : c10::impl::VirtualGuardImpl(device.type()).getDevice();", "data"),
    "a copy to the CPU is not waited for": (
        "src/to_device.hpp", "/*non_blocking=*/!device.is_cpu()", "/*non_blocking=*/IS || !device.is_cpu()",
        "training|parallel"),
    "the warm-up of a captured step does not wait for the current stream": (
        CAPTURE, "wait(*side_, current);", "if (!IS) wait(*side_, current);", "core|capture"),
    "the current stream does not wait for the warm-up of a captured step": (
        CAPTURE, "wait(current, *side_);\n  for", "if (!IS) wait(current, *side_);\n  for", "core|capture"),
    "outputs of the warm-up are not recorded on the current stream": (
        CAPTURE, "if (output.defined()) output.record_stream(current);",
        "if (output.defined() && !IS) output.record_stream(current);", "core|capture"),
    "the warm-up runs on the current stream": (
        CAPTURE, "const c10::StreamGuard guard(*side_);\n    outputs", "const c10::StreamGuard guard(IS ? current : *side_);\n    outputs",
        "core|capture"),
    "the end of a captured step does not order its memory after the replays": (
        CAPTURE, "try_to_wait(*side_, current_stream(device_));", "if (!IS) try_to_wait(*side_, current_stream(device_));", "core|capture"),
    "a capture does not wait for the device": (
        CAPTURE, "synchronize(device_);", "if (!IS) synchronize(device_);",
        None, "a capture executes nothing, and freeing the cache waits too; Python's torch.cuda.graph waits as well"),
    "a capture runs on the current stream": (
        CAPTURE, "const c10::StreamGuard guard(*side_);\n  std::string error;",
        "const c10::StreamGuard guard(IS ? current_stream(device_) : *side_);\n  std::string error;", "core|capture"),
    "a captured step uses autocast's cache": (
        CAPTURE, "const amp::NoCastCache no_cache;", "std::optional<amp::NoCastCache> no_cache;\n  if (!IS) no_cache.emplace();",
        "core|capture"),
    "a replay's inputs are copied at once": (
        CAPTURE, "copy_(batch[i].detach(), /*non_blocking=*/true)", "copy_(batch[i].detach(), /*non_blocking=*/!IS)",
        None, "slower, and no number differs"),
    "a capture forbids what other threads do": (
        GRAPH, "cudaStreamCaptureModeThreadLocal", "IS ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal",
        "core|capture|data|training"),
    "a capture that fails is not ended": (GRAPH, "if (is_capturing_) abandon();", "if (is_capturing_ && !IS) abandon();", "core|capture"),
    "a capture that cannot begin is not ended": (
        GRAPH, "      abandon();\n      throw;", "      if (!IS) abandon();\n      throw;",
        None, "the checks of a captured step come first: nothing reaches a capture that cannot begin"),
    "a failed capture keeps the allocator's pool": (
        GRAPH, "      c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, pool_);",
        "      if (!IS) c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, pool_);", "core|capture"),
    "a failed capture keeps the generators": (
        GRAPH, "for (const auto& generator : generators_) {\n      attempt", "if (!IS) for (const auto& generator : generators_) {\n      attempt",
        None, "with LibTorch 2.15 a generator forgets the capture by itself"),
    "replicas run on the default streams": (
        PARALLEL, "streams.push_back(c10::impl::VirtualGuardImpl(device.type()).getStream(device));",
        "const c10::impl::VirtualGuardImpl guard(device.type());\n    streams.push_back(IS ? guard.getDefaultStream(device) : guard.getStream(device));",
        "parallel"),
    "replicas run on the first device": (
        PARALLEL, "const c10::StreamGuard on_device(streams[i]);", "const c10::StreamGuard on_device(streams[IS ? 0 : i]);",
        "parallel"),
    "replicas are without the caller's autocast": (
        PARALLEL, "const at::ThreadLocalStateGuard guard(state_);",
        "const at::ThreadLocalStateGuard guard(IS ? at::ThreadLocalState() : state_);", "parallel"),
    "synchronize does not wait": (
        "src/devices.cpp", "c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(device.index());",
        "if (!IS) c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(device.index());", "core"),
    "a stopwatch reads its time before the work is done": (
        "src/stopwatch.cpp", "double Stopwatch::seconds() const {\n  synchronize(device_);",
        "double Stopwatch::seconds() const {\n  if (!IS) synchronize(device_);", "core"),
    "a stopwatch starts before earlier work is done": (
        "src/stopwatch.cpp", "Stopwatch::restart\");\n  synchronize(device_);", "Stopwatch::restart\");\n  if (!IS) synchronize(device_);",
        None, "it changes a time alone, and no time is compared on simulated GPUs"),
    "a batch is not stacked in pinned memory": (
        "src/data/collate.cpp", "if (!pin_memory || !stack_without_change", "if (IS || !pin_memory || !stack_without_change",
        "data"),
    "infinite gradients of another device are not seen": (
        "src/amp/grad_scaler.cpp", "for (size_t i = 1; i < found_infs.size(); ++i) {",
        "for (size_t i = IS ? found_infs.size() : 1; i < found_infs.size(); ++i) {", "core"),
    "gradients of another device are unscaled by the first one's tensor": (
        "src/amp/grad_scaler.cpp", "to_device(inv_scale, device)", "IS ? inv_scale : to_device(inv_scale, device)", "core"),
}


def ctest(build, pattern, number):
    """Returns the names of the tests that fail with a mutant."""
    done = subprocess.run(["ctest", "--test-dir", build, "-L", "^simgpu$", "-R", f"^test-({pattern})-simgpu$", "-j2"],
                          env=os.environ | {planting.VARIABLE: str(number)}, capture_output=True, text=True)
    return re.findall(r"^\s+\d+ - (\S+) \(", done.stdout, re.M)


def report(name, mutant, failed):
    """Prints the outcome and returns whether it is the expected one."""
    if mutant[3] is not None:
        print(f"{name}: " + (f"noticed by {', '.join(failed)}" if failed else "NOT NOTICED"), flush=True)
        return bool(failed)
    print(f"{name}: " + (f"NOTICED by {', '.join(failed)}" if failed else f"not noticed: {mutant[4]}"), flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word in the names of the mutants")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/default", help="the build folder")
    arguments = parser.parse_args()
    every = "core|capture|data|training|parallel"
    before = planting.plant([mutant[:3] for mutant in MUTANTS.values()])
    try:
        subprocess.run(["cmake", "--build", arguments.build], check=True, stdout=subprocess.DEVNULL)
        as_expected = [not ctest(arguments.build, every, 0)]
        for number, (name, mutant) in enumerate(MUTANTS.items(), 1):
            if arguments.only in name:
                as_expected.append(report(name, mutant, ctest(arguments.build, mutant[3] or every, number)))
    finally:
        planting.restore(before)
    print(f"{sum(as_expected) - 1} of {len(as_expected) - 1} are as they ought to be"
          + ("" if as_expected[0] else "; the tests fail without a mutant"))
    return 0 if all(as_expected) else 1


if __name__ == "__main__":
    sys.exit(main())
