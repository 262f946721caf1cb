#include "report/environment_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "report/visible_gpus.hpp"

namespace sconce {

namespace {

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

// Control characters in a variable would break the table.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string mebibytes(int64_t bytes) {
  return std::to_string(bytes / (1 << 20)) + " MiB";
}

std::string torch_line(const TorchFacts& torch) {
  if (!torch.built_with_cuda) return torch.version + ", a CPU build";
  return torch.version + ", a CUDA build" + (torch.cuda.empty() ? "" : " of CUDA " + torch.cuda);
}

std::string driver_line(const DriverFacts& driver) {
  if (!driver.error.empty()) return "none: " + driver.error;
  return or_unknown(driver.version) + ", for CUDA up to " + or_unknown(driver.cuda);
}

std::string gpu_line(const GpuFacts& gpu) {
  std::string line = or_unknown(gpu.name);
  if (gpu.memory_total) line += ", " + mebibytes(*gpu.memory_total);
  if (gpu.memory_used) line += ", " + mebibytes(*gpu.memory_used) + " used";
  if (gpu.utilization) line += ", " + std::to_string(*gpu.utilization) + " % busy";
  return line + ", bus " + or_unknown(gpu.bus_id);
}

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json json_of(const TorchFacts& torch) {
  return {{"version", torch.version},
          {"built_with_cuda", torch.built_with_cuda},
          {"cuda_loaded", torch.cuda_loaded},
          {"cuda", or_null(torch.cuda)},
          {"cuda_runtime", or_null(torch.cuda_runtime)},
          {"cudnn", or_null(torch.cudnn)},
          {"nccl", or_null(torch.nccl)},
          {"num_gpus", torch.num_gpus},
          {"num_threads", torch.num_threads}};
}

nlohmann::json json_of(const GpuFacts& gpu) {
  return {{"index", or_null(gpu.index)},
          {"name", or_null(gpu.name)},
          {"uuid", or_null(gpu.uuid)},
          {"bus_id", or_null(gpu.bus_id)},
          {"memory_total", or_null(gpu.memory_total)},
          {"memory_used", or_null(gpu.memory_used)},
          {"utilization", or_null(gpu.utilization)}};
}

nlohmann::json json_of(const DriverFacts& driver) {
  auto gpus = nlohmann::json::array();
  for (const auto& gpu : driver.gpus) gpus.push_back(json_of(gpu));
  return {{"error", or_null(driver.error)},
          {"version", or_null(driver.version)},
          {"cuda", or_null(driver.cuda)},
          {"gpus", gpus}};
}

}  // namespace

std::string name_of(GpuVerdict verdict) {
  switch (verdict) {
    case GpuVerdict::usable:
      return "usable";
    case GpuVerdict::no_driver:
      return "no_driver";
    case GpuVerdict::cpu_build:
      return "cpu_build";
    case GpuVerdict::cuda_not_loaded:
      return "cuda_not_loaded";
    case GpuVerdict::hidden:
      return "hidden";
    case GpuVerdict::driver_too_old:
      return "driver_too_old";
    case GpuVerdict::unusable:
      return "unusable";
  }
  return "unusable";
}

std::string gpu_verdict_text(const Environment& facts) {
  switch (gpu_verdict(facts)) {
    case GpuVerdict::usable:
      return gpu_names(facts) + " can be used";
    case GpuVerdict::no_driver:
      return "no GPU can be used: this machine or container has no working NVIDIA driver";
    case GpuVerdict::cpu_build:
      return "no GPU can be used: LibTorch is a CPU build; build sconce with a CUDA build of it";
    case GpuVerdict::cuda_not_loaded:
      return "no GPU can be used: libtorch_cuda is not loaded; link the program by sconce's CMake "
             "targets, or with -Wl,--no-as-needed -ltorch_cuda";
    case GpuVerdict::hidden:
      return "no GPU can be used: CUDA_VISIBLE_DEVICES='" +
             one_line(variable(facts, "CUDA_VISIBLE_DEVICES").value_or("")) + "' hides all " +
             std::to_string(facts.driver.gpus.size()) + " of this machine";
    case GpuVerdict::driver_too_old:
      return "no GPU can be used: the driver " + facts.driver.version +
             " is too old; it serves CUDA up to " + facts.driver.cuda + ", LibTorch needs CUDA " +
             facts.torch.cuda;
    case GpuVerdict::unusable:
      break;
  }
  return "no GPU can be used: the driver lists " + std::to_string(facts.driver.gpus.size()) +
         ", and CUDA can start none of them";
}

std::string gpu_names(const Environment& facts) {
  const int count = facts.torch.num_gpus;
  std::string text = std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
  for (int i = 0; i < count; ++i) {
    const auto& gpus = facts.driver.gpus;
    const auto found =
        std::find_if(gpus.begin(), gpus.end(), [i](const GpuFacts& gpu) { return gpu.index == i; });
    const bool has_name = found != gpus.end() && !found->name.empty();
    text += (i == 0 ? " (" : ", ") + (has_name ? found->name : "cuda:" + std::to_string(i));
  }
  return count > 0 ? text + ")" : text;
}

std::ostream& operator<<(std::ostream& out, const Environment& facts) {
  const auto row = [&](const std::string& name, const std::string& value) {
    out << name << std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') << one_line(value)
        << '\n';
  };
  row("sconce", facts.sconce);
  row("compiler", facts.compiler + ", " + facts.standard);
  row("LibTorch", torch_line(facts.torch));
  if (facts.torch.cuda_loaded) {
    row("CUDA runtime", or_unknown(facts.torch.cuda_runtime));
    row("cuDNN", or_unknown(facts.torch.cudnn));
    row("NCCL", or_unknown(facts.torch.nccl));
  }
  row("CPU", or_unknown(facts.cpu) + ", " + std::to_string(facts.cores) + " cores, LibTorch uses " +
                 std::to_string(facts.torch.num_threads) + " threads");
  row("driver", driver_line(facts.driver));
  for (const auto& gpu : facts.driver.gpus) {
    row(gpu.index ? "cuda:" + std::to_string(*gpu.index) : "other GPU", gpu_line(gpu));
  }
  for (const auto& [name, value] : facts.variables) row("variable", name + "=" + value);
  row("verdict", gpu_verdict_text(facts));
  return out;
}

std::string to_json(const Environment& facts) {
  const auto verdict = gpu_verdict(facts);
  auto variables = nlohmann::json::object();
  for (const auto& [name, value] : facts.variables) variables[name] = value;
  const nlohmann::json json = {
      {"sconce", facts.sconce},
      {"compiler", facts.compiler},
      {"standard", facts.standard},
      {"cpu", {{"name", or_null(facts.cpu)}, {"cores", facts.cores}}},
      {"libtorch", json_of(facts.torch)},
      {"driver", json_of(facts.driver)},
      {"variables", variables},
      {"verdict", {{"name", name_of(verdict)}, {"text", gpu_verdict_text(facts)}}}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sconce
