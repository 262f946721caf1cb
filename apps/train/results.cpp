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

void write_metrics(const std::filesystem::path& file, const sconce::FitResult& result) {
  std::ostringstream lines;
  lines.precision(std::numeric_limits<double>::max_digits10);
  lines << "epoch,loss,train_acc,test_acc,examples,seconds\n";
  for (const auto& epoch : result.epochs) {
    lines << epoch.epoch << ',' << epoch.loss << ',' << epoch.at("train_acc") << ','
          << epoch.at("test_acc") << ',' << epoch.examples << ',' << epoch.seconds << '\n';
  }
  sconce::io::write_whole(file, lines.str(), "--out");
}

}  // namespace train
