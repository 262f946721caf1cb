#pragma once

#include <iosfwd>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Writes one line per epoch to a stream, such as
/// `epoch 1/3: loss 0.693, train acc 0.500, test acc 0.750`. The test loss is included only if
/// there are no metrics. As in d2l, writes the number of examples per second after the last epoch.
/// If `TrainerOptions::graph` or `compiler` is set, the next line reports whether the step is
/// replayed or compiled, and why.
///
///     sconce::EpochLogger log(std::cout);
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&log}});
///
/// If a callback stops the fit early, the log ends with a line such as
/// `stopped after epoch 2/3: test_loss has not improved for 1 epoch, ...`. If a resumed fit is
/// already complete, the log contains a single line with the last epoch's results. In a process
/// group, only rank 0 writes.
/// Python: d2l's `train_ch6`.
class EpochLogger : public TrainerCallback {
 public:
  /// Constructs a callback that writes to `out`, which must outlive this object.
  explicit EpochLogger(std::ostream& out) : out_(out) {}
  void on_fit_start(Fit& fit) override;
  void on_epoch_end(Fit& fit) override;
  void on_fit_end(Fit& fit) override;

 private:
  void write_speed(const Fit& fit);

  std::ostream& out_;
};

}  // namespace sconce
