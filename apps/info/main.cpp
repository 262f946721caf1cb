// sconce-info: the versions, GPUs and variables of this machine, and whether a GPU can be used.

#include <c10/util/Exception.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "sconce/report/environment.hpp"
#include "standard_output.hpp"

namespace {

int fail(int code, const std::string& message) {
  std::cerr << "sconce-info: " << message.substr(0, message.find('\n')) << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Shows what this machine has: versions, GPUs, variables, and a verdict.",
                 "sconce-info");
    bool json = false;
    bool require_gpu = false;
    app.add_flag("--json", json, "print JSON");
    app.add_flag("--require-gpu", require_gpu, "end with exit code 1 where no GPU can be used");
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      std::cout << app.help();
      apps::check_standard_output();
      return 0;
    } catch (const CLI::ParseError& error) {
      return fail(2, error.what());
    }
    const auto facts = sconce::environment();
    if (json) {
      std::cout << sconce::to_json(facts) << '\n';
    } else {
      std::cout << facts;
    }
    std::cout.flush();
    apps::check_standard_output();
    if (require_gpu && sconce::gpu_verdict(facts) != sconce::GpuVerdict::usable) {
      return fail(1, sconce::gpu_verdict_text(facts));
    }
  } catch (const c10::Error& error) {
    return fail(1, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
  return 0;
}
