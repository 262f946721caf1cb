#pragma once

#include <iosfwd>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Writes a line an epoch to a stream, and at the end the two that the book prints; on rank 0.
/// Such as `epoch 1/3: loss 0.693, train acc 0.500, test acc 0.750`; the loss of the test has a
/// place in it only where there is no metric. Of a fit that was over already, and is resumed, it
/// writes the two alone. Python: d2l's `train_ch6`.
class EpochLines : public TrainerCallback {
 public:
  /// The stream must outlive this.
  explicit EpochLines(std::ostream& out) : out_(out) {}
  void on_fit_begin(Fit& fit) override;
  void on_epoch_end(Fit& fit) override;

 private:
  void write_end(const Fit& fit);

  std::ostream& out_;
};

}  // namespace sconce
