#include "program/python_package.hpp"

#include <ATen/Version.h>
#include <dlfcn.h>

#include <system_error>

namespace sconce::program::detail {

std::filesystem::path default_python() {
  Dl_info library = {};
  if (::dladdr(reinterpret_cast<const void*>(&at::show_config), &library) == 0) return "python3";
  // The path has the form <environment>/lib/python3.x/site-packages/torch/lib/libtorch_cpu.so.
  const auto lib = std::filesystem::absolute(library.dli_fname).parent_path();
  const auto python = (lib / "../../../../../bin/python3").lexically_normal();
  std::error_code error;
  const bool has_both = std::filesystem::exists(lib / "../version.py", error) &&
                        std::filesystem::exists(python, error);
  return has_both ? python : "python3";
}

}  // namespace sconce::program::detail
