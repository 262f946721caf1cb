#include "sconce/training/epoch_logger.hpp"

#include <charconv>
#include <iterator>
#include <ostream>

#include "repr/format.hpp"
#include "training/describe_epoch.hpp"

namespace sconce {

void EpochLogger::on_fit_start(Fit& fit) {
  if (fit.process_group.rank() > 0 || std::ssize(fit.epochs) < fit.max_epochs) return;
  out_ << "all " << fit.max_epochs << " epochs are already trained: " << describe(fit.epochs.back())
       << std::endl;
}

void EpochLogger::on_epoch_end(Fit& fit) {
  if (fit.process_group.rank() > 0) return;
  const auto count = std::ssize(fit.epochs);
  out_ << "epoch " << count << '/' << fit.max_epochs << ": " << describe(fit.epochs.back())
       << std::endl;
  if (count >= fit.max_epochs) write_speed(fit);
}

void EpochLogger::on_fit_end(Fit& fit) {
  const auto count = std::ssize(fit.epochs);
  if (fit.process_group.rank() > 0 || !fit.is_stopping() || count >= fit.max_epochs) return;
  out_ << "stopped ";
  if (fit.batch > 0) {
    out_ << "in epoch " << count + 1 << '/' << fit.max_epochs << " after batch " << fit.batch << '/'
         << fit.num_training_batches;
  } else {
    out_ << "after epoch " << count << '/' << fit.max_epochs;
  }
  if (!fit.stop_reason().empty()) out_ << ": " << fit.stop_reason();
  out_ << std::endl;
}

void EpochLogger::write_speed(const Fit& fit) {
  const double per_second = FitResult{fit.epochs}.examples_per_second();
  out_ << format(per_second, std::chars_format::fixed, 1) << " examples/sec on " << fit.device
       << std::endl;
  if (!fit.step_mode.empty()) out_ << "the step is " << fit.step_mode << std::endl;
}

}  // namespace sconce
