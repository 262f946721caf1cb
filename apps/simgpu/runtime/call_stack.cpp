#include "simgpu/runtime/call_stack.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string_view>

namespace simgpu {

namespace {

constexpr size_t max_depth = 256;
constexpr int calls_of_place = 4;

// The file name prefixes of libraries that do not belong to the program.
constexpr std::array<std::string_view, 10> not_of_program = {
    "libcuda.so", "libsconce_simgpu_kernels",
    "libtorch",   "libc10",
    "python",     "libpython",
    "libc.so",    "libm.so",
    "libstdc++",  "ld-linux"};

struct Call {
  std::string file = {};
  uintptr_t address = 0;  // offset within the file
};

Call call_before(const void* return_address) {
  const void* call = static_cast<const char*>(return_address) - 1;
  Dl_info info = {};
  link_map* loaded = nullptr;
  if (dladdr1(call, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) == 0) return {};
  const std::string path = info.dli_fname;
  return {path.substr(path.rfind('/') + 1), reinterpret_cast<uintptr_t>(call) - loaded->l_addr};
}

bool is_of_program(const Call& call) {
  return !call.file.empty() &&
         std::none_of(not_of_program.begin(), not_of_program.end(),
                      [&](std::string_view begin) { return call.file.starts_with(begin); });
}

}  // namespace

CallStack call_stack() {
  CallStack stack(max_depth);
  stack.resize(static_cast<size_t>(backtrace(stack.data(), static_cast<int>(stack.size()))));
  return stack;
}

std::string place_of(const CallStack& stack) {
  std::string file;
  std::ostringstream addresses;
  int calls = 0;
  for (const void* return_address : stack) {
    const Call call = call_before(return_address);
    if (!is_of_program(call) || (calls > 0 && call.file != file)) continue;
    file = call.file;
    addresses << " 0x" << std::hex << call.address;
    if (++calls == calls_of_place) break;
  }
  return file + addresses.str();
}

}  // namespace simgpu
