#include "sconce/training/epoch_lines.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <ostream>
#include <string>

namespace sconce {

namespace {

// std::format is missing from some of the supported compilers.
template <class... A>
std::string format(const char* pattern, A... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

std::string describe(const EpochMetrics& epoch) {
  std::string text = format("loss %.3f", epoch.loss);
  const auto& metrics = epoch.metrics;
  const bool has_others = std::any_of(metrics.begin(), metrics.end(),
                                      [](const auto& value) { return value.first != "test_loss"; });
  for (auto [name, value] : metrics) {
    if (has_others && name == "test_loss") continue;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += format(", %s %.3f", name.c_str(), value);
  }
  return text;
}

}  // namespace

void EpochLines::on_fit_begin(Fit& fit) {
  if (std::ssize(fit.epochs) >= fit.max_epochs) write_end(fit);
}

void EpochLines::on_epoch_end(Fit& fit) {
  if (fit.process_group.rank() > 0) return;
  const auto count = std::ssize(fit.epochs);
  out_ << "epoch " << count << '/' << fit.max_epochs << ": " << describe(fit.epochs.back())
       << std::endl;
  if (count >= fit.max_epochs) write_end(fit);
}

void EpochLines::write_end(const Fit& fit) {
  if (fit.process_group.rank() > 0) return;
  const double per_second = FitResult{fit.epochs}.examples_per_second();
  out_ << describe(fit.epochs.back()) << '\n'
       << format("%.1f", per_second) << " examples/sec on " << fit.device << std::endl;
}

}  // namespace sconce
