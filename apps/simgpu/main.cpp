// sconce-simgpu runs a program on GPUs that are simulated on the CPU.
//   build/default/bin/sconce-simgpu --gpus 2 -- build/default/bin/sconce-train --parallel data

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "program_file.hpp"
#include "simgpu/runtime/known_reports.hpp"
#include "simgpu/runtime/report_file.hpp"
#include "simgpu/runtime/visible_gpus.hpp"
#include "standard_output.hpp"
#include "torch_of_program.hpp"

namespace {

using simgpu::CommandLine;
using simgpu::UsageError;

// Returns whether a real GPU's driver is active.
bool has_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int gpus = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&gpus) == 0 && gpus > 0;
}

void check_environment(const CommandLine& line) {
  if (std::getenv("SCONCE_SIMGPU_GPUS") != nullptr) {
    throw UsageError("this process already runs on simulated GPUs");
  }
  if (const char* preloaded = std::getenv("LD_PRELOAD"); preloaded != nullptr && *preloaded != 0) {
    throw UsageError(std::string("expected LD_PRELOAD to be unset, got ") + preloaded);
  }
  if (!line.hide_real_gpus && has_driver()) {
    throw UsageError("this machine has a GPU; use --hide-real-gpus to use simulated GPUs instead");
  }
}

// The process writes the file only when it ends, which would be too late to report an error.
void check_counts(const std::filesystem::path& file) {
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (std::filesystem::is_directory(file) || ::access(folder.c_str(), W_OK) != 0) {
    throw UsageError("--counts: cannot write " + file.string());
  }
}

void check_reports(const CommandLine& line) {
  try {
    if (!line.ignore.empty()) simgpu::read_known_reports(line.ignore);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--ignore: ") + error.what());
  }
  try {
    if (!line.report.empty()) simgpu::start_report_file(line.report);
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--report: ") + error.what());
  }
}

std::string absolute(const std::string& file) {
  return file.empty() ? "" : std::filesystem::absolute(file).string();
}

// In both the build folder and an installation, the library folder is next to the folder that
// contains the program.
std::filesystem::path runtime_library() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
                      SCONCE_SIMGPU_LIBRARIES;
  for (const char* name : {"libsconce_simgpu_kernels.so", "libcuda.so.1"}) {
    if (!std::filesystem::exists(folder / name)) {
      throw std::runtime_error("there is no " + (folder / name).string());
    }
  }
  return folder / "libcuda.so.1";
}

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), /*overwrite=*/1);
}

void print_gpus(const CommandLine& line) {
  std::cerr << "simulated GPUs: " << line.gpus << " with " << (line.memory >> 20) << " MiB each";
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) {
    std::cerr << ", and CUDA_VISIBLE_DEVICES exposes "
              << simgpu::find_visible_gpus(line.gpus).size();
  }
  std::cerr << "; simulated and real GPUs differ in timing and rounding" << std::endl;
}

// The default backend of torch.compile generates kernels that cannot run here. If the variable is
// already set, even to an empty value, the program's choice of backends is kept.
void set_compiler_backend() {
  const char* name = "TORCH_COMPILE_OVERRIDE_BACKENDS";
  if (std::getenv(name) == nullptr) set(name, ">=0:aot_eager");
}

[[noreturn]] void run(const CommandLine& line, const std::filesystem::path& program) {
  set("LD_PRELOAD", runtime_library().string());
  set("SCONCE_SIMGPU_GPUS", std::to_string(line.gpus));
  set("SCONCE_SIMGPU_MEMORY", std::to_string(line.memory));
  set("SCONCE_SIMGPU_RACES", line.races);
  set("SCONCE_SIMGPU_LATE_COPIES", line.late_copies ? "1" : "0");
  set("SCONCE_SIMGPU_COUNTS", absolute(line.counts));
  set("SCONCE_SIMGPU_IGNORE", absolute(line.ignore));
  set("SCONCE_SIMGPU_REPORT", absolute(line.report));
  set("SCONCE_SIMGPU_PLACES", line.places ? "1" : "0");
  set_compiler_backend();
  print_gpus(line);
  std::vector<char*> arguments;
  auto words = line.program;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  throw std::runtime_error("cannot start " + program.string() + ": " + std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const CommandLine line = simgpu::parse_command_line(argc, argv);
    if (!line.text.empty()) {
      std::cout << line.text;
      apps::check_standard_output();
      return 0;
    }
    check_environment(line);
    if (!line.counts.empty()) check_counts(line.counts);
    const auto program = simgpu::find_program(line.program.front());
    simgpu::check_torch(program, simgpu::executable_of(program));
    check_reports(line);
    run(line, program);
  } catch (const UsageError& error) {
    return apps::fail("sconce-simgpu", error.what(), 2);
  } catch (const std::exception& error) {
    return apps::fail("sconce-simgpu", error.what());
  }
}
