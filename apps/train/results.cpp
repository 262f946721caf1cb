#include "results.hpp"

#include <limits>
#include <sstream>

#include "sconce/io/whole_file.hpp"

namespace train {

void check_writable(const std::filesystem::path& file, const std::string& flag) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  TORCH_CHECK(!error, flag, ": ", file.parent_path().string(),
              ": cannot make the folder: ", error.message());
  const sconce::io::WholeFile removed_at_once(file, flag);
}

std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs) {
  std::ostringstream lines;
  lines.precision(std::numeric_limits<double>::max_digits10);
  lines << "epoch,loss,train_acc,test_acc,examples,seconds\n";
  for (const auto& epoch : epochs) {
    lines << epoch.epoch << ',' << epoch.loss << ',' << epoch.at("train_acc") << ','
          << epoch.at("test_acc") << ',' << epoch.examples << ',' << epoch.seconds << '\n';
  }
  return lines.str();
}

void write_metrics(const std::filesystem::path& file, const sconce::FitResult& result) {
  sconce::io::write_whole(file, metrics_text(result.epochs), "--out");
}

}  // namespace train
