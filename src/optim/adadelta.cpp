#include "sconce/optim/adadelta.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/view_as_complex.h>

#include <array>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using Tensors = std::vector<torch::Tensor>;

struct AdadeltaBucket : Bucket {
  using Bucket::Bucket;

  Tensors square_avgs = {};
  Tensors acc_deltas = {};
  PackedNumbers steps = {};
};

// Updates the running averages, and returns the parameter updates before multiplication by the
// learning rate.
Tensors deltas_of(const AdadeltaBucket& b, const AdadeltaOptions& o, bool maximize) {
  const Tensors grads = decayed_grads(b, o.weight_decay(), maximize);
  at::_foreach_mul_(b.square_avgs, o.rho());
  at::_foreach_addcmul_(b.square_avgs, grads, grads, 1 - o.rho());
  const Tensors roots = at::_foreach_add(b.square_avgs, o.eps());
  at::_foreach_sqrt_(roots);
  Tensors deltas = at::_foreach_add(b.acc_deltas, o.eps());
  at::_foreach_sqrt_(deltas);
  at::_foreach_div_(deltas, roots);
  at::_foreach_mul_(deltas, grads);
  at::_foreach_mul_(b.acc_deltas, o.rho());
  at::_foreach_addcmul_(b.acc_deltas, deltas, deltas, 1 - o.rho());
  return deltas;
}

void step_foreach(const AdadeltaBucket& b, const AdadeltaOptions& o, const LearningRate& lr,
                  bool maximize) {
  at::_foreach_add_(b.params, deltas_of(b, o, maximize), -lr.number);
}

void step_on_device(const AdadeltaBucket& b, const AdadeltaOptions& o, const LearningRate& lr,
                    bool maximize) {
  const Tensors deltas = deltas_of(b, o, maximize);
  at::_foreach_mul_(deltas, -*lr.tensor);
  at::_foreach_add_(b.params, deltas);
}

// Updates the tensors one at a time. As in Python, the last addition also uses complex arithmetic.
void step_for_loop(const AdadeltaBucket& b, const AdadeltaOptions& o, const LearningRate& lr,
                   bool maximize) {
  for (size_t i = 0; i < b.params.size(); ++i) {
    const auto grad = as_real(decayed_grad(b, i, o.weight_decay(), maximize));
    const auto square_avg = as_real(b.square_avgs[i]);
    const auto acc_delta = as_real(b.acc_deltas[i]);
    scale(square_avg, o.rho()).addcmul_(grad, grad, 1 - o.rho());
    const auto root = square_avg.add(o.eps()).sqrt_();
    const auto delta = acc_delta.add(o.eps()).sqrt_().div_(root).mul_(grad);
    scale(acc_delta, o.rho()).addcmul_(delta, delta, 1 - o.rho());
    b.params[i].add_(b.params[i].is_complex() ? at::view_as_complex(delta) : delta, -lr.number);
  }
}

}  // namespace

template <>
struct Table<Adadelta> {
  using Options = AdadeltaOptions;
  using State = AdadeltaParamState;
  using Bucket = AdadeltaBucket;
  static constexpr const char* name = "sconce::optim::Adadelta";
  static constexpr Kernels fastest = Kernels::foreach;
  static constexpr bool has_capturable = true;
  static constexpr std::array fields = {
      count("step", &State::step, &Bucket::steps),
      like_parameter("square_avg", &State::square_avg, &Bucket::square_avgs),
      like_parameter("acc_delta", &State::acc_delta, &Bucket::acc_deltas)};

  static void visit_options(AdadeltaOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("rho", o.rho());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
  }

  static void check(const AdadeltaOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    TORCH_CHECK_VALUE(o.rho() >= 0 && o.rho() <= 1, name, ": expected rho in [0, 1], got ",
                      o.rho());
    expect.at_least_0("eps", o.eps());
    expect.at_least_0("weight_decay", o.weight_decay());
  }

  static void step(auto& buckets, const Step<AdadeltaOptions>& s) { step_unfused(buckets, s); }
};

template struct TableOptions<Adadelta, AdadeltaOptions>;
template struct TableParamState<Adadelta, AdadeltaParamState>;
template class OptimizerOf<Adadelta, AdadeltaOptions>;

}  // namespace sconce::optim
