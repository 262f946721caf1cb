#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>

#include <tuple>

namespace sconce::optim {

/// Base class for optimizer options with a momentum that schedulers can cycle.
class MomentumOptions {
 public:
  virtual ~MomentumOptions() = default;

  /// Sets the momentum or the first beta. Returns false if the options contain neither
  /// `momentum` nor `betas`.
  virtual bool set_momentum(double momentum) = 0;
};

/// Base class for the `Class` optimizer's options, for optimizers that LibTorch does not provide. A
/// table in the source file that implements `Class` lists the options in `Derived` and their keys.
template <class Class, class Derived>
struct TableOptions : torch::optim::OptimizerCloneableOptions<Derived>, MomentumOptions {
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(const double lr) override { static_cast<Derived&>(*this).lr(lr); }

  bool set_momentum(double momentum) override {
    auto& options = static_cast<Derived&>(*this);
    if constexpr (requires { options.betas(); }) {
      options.betas({momentum, std::get<1>(options.betas())});
      return true;
    }
    return false;
  }

  /// Reads the options from an optimizer archive.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the options to an optimizer archive.
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

}  // namespace sconce::optim
