// sconce-info shows this machine's versions, GPUs, and environment variables, and whether a GPU can
// be used.

#include <iostream>

#include "arguments.hpp"
#include "info/machine_text.hpp"
#include "standard_output.hpp"

constexpr auto program = "sconce-info";

int main(int argc, char** argv) {
  try {
    CLI::App app(
        "Shows this machine's software versions, GPUs, and environment variables, and whether a "
        "GPU "
        "can be used.",
        program);
    bool json = false;
    bool require_gpu = false;
    app.add_flag("--json", json, "Print JSON instead of a table");
    app.add_flag("--require-gpu", require_gpu, "Exit with code 1 if no GPU can be used");
    const std::string text = apps::parse_arguments(app, argc, argv);
    if (!text.empty()) {
      std::cout << text;
      apps::check_standard_output();
      return 0;
    }
    const auto machine = apps::this_machine();
    if (json) {
      std::cout << apps::to_json(machine) << '\n';
    } else {
      std::cout << machine;
    }
    std::cout.flush();
    apps::check_standard_output();
    if (require_gpu && sconce::gpu_status(machine.environment) != sconce::GpuStatus::usable) {
      return apps::fail(program, sconce::gpu_status_text(machine.environment));
    }
  } catch (const apps::UsageError& error) {
    return apps::fail(program, error.what(), 2);
  } catch (const std::exception& error) {
    return apps::fail(program, error.what());
  }
  return 0;
}
