#include "metrics_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace train {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* doing, int error) {
  throw std::runtime_error("--out: cannot " + std::string(doing) + " " + path.string() + ": " +
                           std::generic_category().message(error));
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& folder)
    : path_(folder / "metrics.csv"),
      unfinished_(folder / ("metrics.csv." + std::to_string(::getpid()) + ".part")) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder, "make the folder", error.value());
  if (!std::ofstream(unfinished_)) fail(unfinished_, "write", errno);
}

MetricsFile::~MetricsFile() {
  std::error_code ignored;
  std::filesystem::remove(unfinished_, ignored);
}

void MetricsFile::write(const sconce::FitResult& result) {
  std::ofstream file(unfinished_);
  file.precision(std::numeric_limits<double>::max_digits10);
  file << "epoch,loss,train_acc,test_acc,examples,seconds\n";
  for (const auto& epoch : result.epochs) {
    file << epoch.epoch << ',' << epoch.loss << ',' << epoch.train_acc << ','
         << epoch.test_acc.value() << ',' << epoch.examples << ',' << epoch.seconds << '\n';
  }
  file.close();
  if (!file) fail(unfinished_, "write", errno);
  std::error_code error;
  std::filesystem::rename(unfinished_, path_, error);
  if (error) fail(path_, "write", error.value());
}

}  // namespace train
