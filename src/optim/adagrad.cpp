#include "sconce/optim/adagrad.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <array>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using torch::optim::AdagradOptions;

struct AdagradBucket : Bucket {
  using Bucket::Bucket;

  std::vector<torch::Tensor> sums = {};
  PackedNumbers steps = {};
};

void step_fused(AdagradBucket& b, const AdagradOptions& o, const ExtraOptions& extra,
                const Amp& amp) {
  match_strides(b);
  const auto grad_scale = to_device(amp.grad_scale, b.device);
  const auto found_inf = to_device(amp.found_inf, b.device);
  with_lr(o.lr(), extra.lr, b.device, [&](const auto& lr) {
    call_fused_kernel(b, [&](const auto& part) {
      at::_fused_adagrad_(part(b.params), part(b.grads), part(b.sums), part(b.steps.views()), lr,
                          o.lr_decay(), o.weight_decay(), o.eps(), extra.maximize, grad_scale,
                          found_inf);
    });
  });
  if (found_inf) b.steps.subtract(*found_inf);  // a skipped step is not counted
}

// Returns the learning-rate divisor for each parameter. Reads step counts from a GPU only if they
// affect the result.
std::vector<double> divisors(const AdagradBucket& b, const AdagradOptions& o) {
  std::vector<double> all(b.params.size(), 1);
  if (o.lr_decay() == 0) return all;
  const auto steps = at::stack(b.steps.views()).cpu();
  const float* counts = steps.const_data_ptr<float>();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = 1 + (static_cast<double>(counts[i]) - 1) * o.lr_decay();
  }
  return all;
}

// Updates all tensors using operations on lists of tensors.
void step_foreach(const AdagradBucket& b, const AdagradOptions& o, const LearningRate& lr,
                  bool maximize) {
  std::vector<torch::Tensor> grads = decayed_grads(b, o.weight_decay(), maximize);
  at::_foreach_addcmul_(b.sums, grads, grads, 1);
  const auto roots = at::_foreach_sqrt(b.sums);
  at::_foreach_add_(roots, o.eps());

  const bool may_overwrite = maximize || o.weight_decay() != 0;
  const auto multiply = [&](const auto& factors) {  // only in-place operations preserve all types
    if (!may_overwrite) {
      grads = at::_foreach_mul(grads, factors);
    } else {
      at::_foreach_mul_(grads, factors);
    }
  };
  std::vector<at::Scalar> numbers;
  std::vector<torch::Tensor> tensors;
  for (const double divisor : divisors(b, o)) {
    if (lr.tensor) {
      tensors.push_back(-lr.tensor->div(at::native::wrapped_scalar_tensor(divisor)));
    } else {
      numbers.emplace_back(-lr.over(divisor));
    }
  }
  lr.tensor ? multiply(tensors) : multiply(numbers);
  at::_foreach_addcdiv_(b.params, grads, roots);
}

void step_sparse(const torch::Tensor& param, const torch::Tensor& uncoalesced,
                 const torch::Tensor& sum, double eps, double lr) {
  const auto grad = uncoalesced.coalesce();  // squares the sums instead of their terms
  const auto with_values = [&grad](const torch::Tensor& values) {
    const auto tensor = grad.clone()._coalesced_(false);  // like Python, which adds differently
    tensor._values().copy_(values);
    return tensor;
  };
  sum.add_(with_values(grad._values().pow(2)));
  const auto roots = sum.sparse_mask(grad)._values().sqrt_().add_(eps);
  param.add_(with_values(grad._values() / roots), -lr);
}

// Updates the tensors one at a time.
void step_for_loop(const AdagradBucket& b, const AdagradOptions& o, const LearningRate& lr,
                   bool maximize) {
  const auto lr_divisors = divisors(b, o);
  for (size_t i = 0; i < b.params.size(); ++i) {
    torch::Tensor grad = decayed_grad(b, i, o.weight_decay(), maximize);
    if (grad.is_sparse()) {
      step_sparse(b.params[i], grad, b.sums[i], o.eps(), lr.over(lr_divisors[i]));
      continue;
    }
    grad = as_real(grad);
    const auto sum = as_real(b.sums[i]);
    sum.addcmul_(grad, grad, 1);
    as_real(b.params[i]).addcdiv_(grad, sum.sqrt().add_(o.eps()), -lr.over(lr_divisors[i]));
  }
}

}  // namespace

template <>
struct Table<Adagrad> {
  using Options = AdagradOptions;
  using State = AdagradParamState;
  using Bucket = AdagradBucket;
  static constexpr const char* name = "sconce::optim::Adagrad";
  static constexpr Kernels fastest = Kernels::fused;
  static constexpr bool supports_sparse = true;
  static constexpr bool python_has_fused_on_cpu_only = true;  // as of PyTorch 2.11
  static constexpr bool starts_with_states = true;
  static constexpr std::array fields = {count("step", &State::step, &Bucket::steps),
                                        like_parameter("sum", &State::sum, &Bucket::sums)};

  static void fill(State& state, const AdagradOptions& defaults) {
    const double first = defaults.initial_accumulator_value();
    if (state.sum.is_complex()) {
      state.sum.fill_(c10::complex<double>(first, first));
    } else {
      state.sum.fill_(first);
    }
  }

  static void visit_options(AdagradOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("lr_decay", o.lr_decay());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("initial_accumulator_value", o.initial_accumulator_value());
  }

  static void check(const AdagradOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("lr_decay", o.lr_decay());
    expect.at_least_0("weight_decay", o.weight_decay());
    expect.at_least_0("initial_accumulator_value", o.initial_accumulator_value());
    expect.at_least_0("eps", o.eps());
  }

  static void check_sparse(const AdagradOptions& o, const std::string& class_name) {
    TORCH_CHECK(o.weight_decay() == 0, class_name,
                ": expected dense gradients (weight_decay is set), got a sparse gradient");
  }

  static void step(auto& buckets, const Step<AdagradOptions>& s) {
    const auto& o = s.options;
    for (auto& bucket : buckets) {
      // As in Python, the for-loop implementation then updates all parameters with this device and
      // type.
      const bool has_sparse = std::any_of(buckets.begin(), buckets.end(), [&](const auto& other) {
        return other.has_sparse_grad && other.device == bucket.device &&
               other.dtype == bucket.dtype;
      });
      bucket.steps.add_one();
      if (s.kernels == Kernels::fused && !has_sparse) {
        step_fused(bucket, o, s.extra, s.amp);
      } else if (s.kernels == Kernels::foreach && !has_sparse) {
        const auto viewed = viewed_as_real(bucket);
        step_foreach(viewed ? *viewed : bucket, o, host_lr(o.lr(), s.extra), s.extra.maximize);
      } else {
        step_for_loop(bucket, o, host_lr(o.lr(), s.extra), s.extra.maximize);
      }
    }
  }
};

template struct TableParamState<Adagrad, AdagradParamState>;
template class OptimizerOf<Adagrad, AdagradOptions>;

}  // namespace sconce::optim
