#include "info/machine_text.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

namespace apps {

namespace {

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

// Replaces control characters, because they would break the table.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string mebibytes(int64_t bytes) {
  return std::to_string(bytes / (1 << 20)) + " MiB";
}

std::string torch_line(const sconce::TorchInfo& torch) {
  if (!torch.built_with_cuda) return torch.version + ", a CPU build";
  return torch.version + ", a CUDA build" + (torch.cuda.empty() ? "" : " of CUDA " + torch.cuda);
}

std::string driver_line(const sconce::DriverInfo& driver) {
  if (!driver.error.empty()) return "none: " + driver.error;
  return or_unknown(driver.version) + ", supports CUDA up to " + or_unknown(driver.cuda);
}

std::string gpu_line(const sconce::GpuInfo& gpu) {
  std::string line = or_unknown(gpu.name);
  if (gpu.memory_total) line += ", " + mebibytes(*gpu.memory_total);
  if (gpu.memory_used) line += ", " + mebibytes(*gpu.memory_used) + " used";
  if (gpu.utilization) line += ", " + std::to_string(*gpu.utilization) + "% busy";
  return line + ", bus " + or_unknown(gpu.bus_id);
}

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json torch_json(const Machine& machine) {
  const auto& torch = machine.environment.torch;
  return {{"version", torch.version},
          {"built_with_cuda", torch.built_with_cuda},
          {"cuda_loaded", torch.cuda_loaded},
          {"cuda", or_null(torch.cuda)},
          {"cuda_runtime", or_null(machine.cuda_runtime)},
          {"cudnn", or_null(machine.cudnn)},
          {"nccl", or_null(machine.nccl)},
          {"num_gpus", torch.num_gpus},
          {"num_threads", machine.num_threads}};
}

nlohmann::json json_of(const sconce::GpuInfo& gpu) {
  return {{"index", or_null(gpu.index)},
          {"name", or_null(gpu.name)},
          {"uuid", or_null(gpu.uuid)},
          {"bus_id", or_null(gpu.bus_id)},
          {"memory_total", or_null(gpu.memory_total)},
          {"memory_used", or_null(gpu.memory_used)},
          {"utilization", or_null(gpu.utilization)}};
}

nlohmann::json json_of(const sconce::DriverInfo& driver) {
  auto gpus = nlohmann::json::array();
  for (const auto& gpu : driver.gpus) gpus.push_back(json_of(gpu));
  return {{"error", or_null(driver.error)},
          {"version", or_null(driver.version)},
          {"cuda", or_null(driver.cuda)},
          {"gpus", gpus}};
}

std::string name_of(sconce::GpuStatus verdict) {
  switch (verdict) {
    case sconce::GpuStatus::usable:
      return "usable";
    case sconce::GpuStatus::no_driver:
      return "no_driver";
    case sconce::GpuStatus::cpu_build:
      return "cpu_build";
    case sconce::GpuStatus::cuda_not_loaded:
      return "cuda_not_loaded";
    case sconce::GpuStatus::hidden:
      return "hidden";
    case sconce::GpuStatus::driver_too_old:
      return "driver_too_old";
    case sconce::GpuStatus::unusable:
      return "unusable";
  }
  return "unusable";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  const auto row = [&](const std::string& name, const std::string& value) {
    out << name << std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') << one_line(value)
        << '\n';
  };
  row("sconce", machine.sconce);
  row("compiler", machine.compiler + ", " + machine.standard);
  row("LibTorch", torch_line(machine.environment.torch));
  if (machine.environment.torch.cuda_loaded) {
    row("CUDA runtime", or_unknown(machine.cuda_runtime));
    row("cuDNN", or_unknown(machine.cudnn));
    row("NCCL", or_unknown(machine.nccl));
  }
  row("CPU", or_unknown(machine.cpu) + ", " + std::to_string(machine.cores) +
                 " cores, LibTorch uses " + std::to_string(machine.num_threads) + " threads");
  row("driver", driver_line(machine.environment.driver));
  for (const auto& gpu : machine.environment.driver.gpus) {
    row(gpu.index ? "cuda:" + std::to_string(*gpu.index) : "other GPU", gpu_line(gpu));
  }
  for (const auto& [name, value] : machine.variables) row("variable", name + "=" + value);
  row("verdict", sconce::gpu_status_text(machine.environment));
  return out;
}

std::string to_json(const Machine& machine) {
  const auto verdict = sconce::gpu_status(machine.environment);
  auto variables = nlohmann::json::object();
  for (const auto& [name, value] : machine.variables) variables[name] = value;
  const nlohmann::json json = {
      {"sconce", machine.sconce},
      {"compiler", machine.compiler},
      {"standard", machine.standard},
      {"cpu", {{"name", or_null(machine.cpu)}, {"cores", machine.cores}}},
      {"libtorch", torch_json(machine)},
      {"driver", json_of(machine.environment.driver)},
      {"variables", variables},
      {"verdict",
       {{"name", name_of(verdict)}, {"text", sconce::gpu_status_text(machine.environment)}}}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace apps
