#include "results.hpp"

#include <c10/util/StringUtil.h>

#include <exception>
#include <limits>
#include <optional>
#include <sstream>

#include "program_file.hpp"
#include "reports.hpp"
#include "sconce/io/atomic_file.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/nn/state_dict.hpp"

namespace train {

void check_writable(const std::filesystem::path& file, const std::string& flag) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  TORCH_CHECK(!error, flag, ": ", file.parent_path().string(),
              ": cannot create the folder: ", error.message());
  const sconce::io::AtomicFile removed_at_once(file, flag);
}

void check_results_writable(const CommandLine& line) {
  if (!line.export_file.empty()) check_writable(line.export_file, "--export");
  if (line.out.empty()) return;
  for (const auto* name : {metrics_name, weights_name}) {
    check_writable(line.out / name, "--out");
  }
  if (line.profile > 0) check_writable(line.out / trace_name, "--profile");
}

std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs) {
  std::ostringstream lines;
  lines.precision(std::numeric_limits<double>::max_digits10);
  std::vector<std::string> names;
  const auto metrics = epochs.empty() ? sconce::MetricValues() : epochs.front().metrics;
  for (const auto& [name, value] : metrics) names.push_back(name);
  std::erase(names, "test_loss");
  lines << "epoch,loss," << c10::Join(",", names) << ",examples,seconds\n";
  for (const auto& epoch : epochs) {
    lines << epoch.epoch << ',' << epoch.loss;
    for (const auto& name : names) lines << ',' << epoch.at(name);
    lines << ',' << epoch.examples << ',' << epoch.seconds << '\n';
  }
  return lines.str();
}

void write_results(const CommandLine& line, const TrainedModel& model,
                   sconce::optim::ExponentialMovingAverage* ema, const sconce::FitResult& result) {
  std::optional<sconce::optim::ExponentialMovingAverage::SwapGuard> averages;
  if (ema != nullptr) averages.emplace(*ema);
  std::exception_ptr first_error;
  const auto attempt = [&](const auto& write) {
    try {
      write();
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  };
  if (!line.out.empty()) {
    attempt([&] {
      sconce::io::write_file(line.out / metrics_name, metrics_text(result.epochs), "--out");
    });
    attempt([&] {
      sconce::io::save_safetensors(line.out / weights_name, sconce::nn::state_dict(*model.network),
                                   model_metadata(model.name, model.task));
    });
  }
  if (!line.export_file.empty()) attempt([&] { export_program(line.export_file, model); });
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace train
