#include "torch_of_program.hpp"

#include <torch/version.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "command_line.hpp"
#include "output_of.hpp"

namespace simgpu {

namespace {

const std::string wanted = std::to_string(TORCH_VERSION_MAJOR) + "." +
                           std::to_string(TORCH_VERSION_MINOR) + "." +
                           std::to_string(TORCH_VERSION_PATCH);

// Returns the folder in which the dynamic loader finds the given library for the program, or an
// empty path if the loader does not load that library.
std::filesystem::path folder_of_library(const std::string& loaded, const std::string& name) {
  std::istringstream lines(loaded);
  for (std::string line; std::getline(lines, line);) {
    const auto arrow = line.find(" => /");
    if (line.find(name + " =>") == std::string::npos || arrow == std::string::npos) continue;
    const auto path = line.substr(arrow + 4, line.rfind(" (") - arrow - 4);
    return std::filesystem::path(path).parent_path();
  }
  return {};
}

bool is_python(const std::filesystem::path& program) {
  return program.filename().string().starts_with("python");
}

// Returns the lib folder of the torch that Python would import, or an empty path if the program is
// not Python or cannot import torch.
std::filesystem::path folder_of_python(const std::filesystem::path& python) {
  if (!is_python(python)) return {};
  const auto found = output_of({python.string(), "-c",
                                "import importlib.util as util; spec = util.find_spec('torch'); "
                                "print(spec.submodule_search_locations[0], end='')"});
  return found.empty() ? std::filesystem::path() : std::filesystem::path(found) / "lib";
}

// Returns the version from torch/version.py in a Python package or from build-version in a
// download, or an empty string if neither file exists.
std::string version_at(const std::filesystem::path& folder) {
  for (const char* name : {"version.py", "build-version"}) {
    std::ifstream file(folder.parent_path() / name);
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      const std::regex version("^(?:__version__ = ')?([0-9]+\\.[0-9]+\\.[0-9]+)");
      if (std::regex_search(line, match, version)) return match[1];
    }
  }
  return {};
}

}  // namespace

void check_torch(const std::filesystem::path& program, const std::filesystem::path& executable) {
  const auto loaded = output_of({executable.string()}, {"LD_TRACE_LOADED_OBJECTS=1"});
  auto folder = folder_of_library(loaded, "libtorch_cpu.so");
  if (folder.empty()) folder = folder_of_python(program);  // may be a wrapper script named python
  if (folder.empty()) folder = folder_of_python(executable);
  if (folder.empty() && (is_python(program) || is_python(executable))) {
    throw UsageError(program.string() + ": this Python cannot import torch");
  }
  if (folder.empty()) {
    throw UsageError(program.string() +
                     ": expected a program that links to LibTorch, or Python with torch; if a "
                     "shell or mpirun starts the program, specify the program itself");
  }
  if (!std::filesystem::exists(folder / "libtorch_cuda.so")) {
    throw UsageError(program.string() + ": expected a CUDA build of LibTorch; " + folder.string() +
                     " is a CPU build");
  }
  const auto version = version_at(folder);
  if (!version.empty() && version != wanted) {
    throw UsageError(program.string() + ": expected LibTorch " + wanted +
                     ", the version that sconce-simgpu was built with; " + folder.string() +
                     " is " + version);
  }
}

}  // namespace simgpu
