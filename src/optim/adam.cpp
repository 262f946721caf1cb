#include "sconce/optim/adam.hpp"

#include <array>
#include <type_traits>

#include "optim/adam_kernels.hpp"
#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;

// The tables for Adam and AdamW are identical except for the option type.
template <class AdamOrAdamWOptions>
struct AdamTable {
  using Options = AdamOrAdamWOptions;
  using State = AdamParamState;
  using Bucket = AdamBucket;
  static constexpr bool is_adamw = std::is_same_v<Options, AdamWOptions>;
  static constexpr const char* name = is_adamw ? "sconce::optim::AdamW" : "sconce::optim::Adam";
  static constexpr Kernels fastest = Kernels::fused;
  static constexpr std::array fields = {
      count("step", &State::step, &Bucket::steps),
      like_parameter("exp_avg", &State::exp_avg, &Bucket::exp_avgs),
      like_parameter("exp_avg_sq", &State::exp_avg_sq, &Bucket::exp_avg_sqs),
      like_parameter("max_exp_avg_sq", &State::max_exp_avg_sq, &Bucket::max_exp_avg_sqs,
                     Needed::by_options)};

  static bool uses(const Options& o, const auto& /*field*/) { return o.amsgrad(); }

  static void visit_options(Options& o, StateVisitor& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("amsgrad", o.amsgrad(), false);
    visit.write_only("capturable", false);
    bool decoupled = is_adamw;  // missing in states from older PyTorch versions
    visit("decoupled_weight_decay", decoupled, is_adamw);
    TORCH_CHECK_VALUE(is_adamw || !decoupled, name,
                      "::load_state_dict: expected Adam state, got AdamW state");
  }

  static void check(const Options& o, const Expect& expect) {
    TORCH_CHECK_VALUE(!(expect.extra.lr && expect.extra.kernels == Kernels::foreach), name,
                      ": expected lr to be a number with Kernels::foreach, got a tensor");
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("eps", o.eps());
    expect.betas(o.betas());
    expect.at_least_0("weight_decay", o.weight_decay());
  }

  static void step(auto& buckets, const Step<Options>& s) {
    const auto& o = s.options;
    const auto [beta1, beta2] = o.betas();
    LearningRate lr = {o.lr(), {}};
    if (s.kernels != Kernels::fused) lr = host_lr(o.lr(), s.extra);
    const AdamHyperparameters h = {lr.number,        beta1,       beta2,   o.eps(),
                                   o.weight_decay(), o.amsgrad(), is_adamw};
    for (auto& bucket : buckets) {
      bucket.steps.add_one();
      if (s.kernels == Kernels::fused) {
        step_fused(bucket, h, s.extra, s.amp);
      } else if (s.kernels == Kernels::foreach) {
        const auto viewed = viewed_as_real(bucket);
        step_foreach(viewed ? *viewed : bucket, h, s.extra.maximize);
      } else {
        step_for_loop(bucket, h, lr, s.extra.maximize);
      }
    }
  }
};

}  // namespace

template <>
struct Table<Adam> : AdamTable<AdamOptions> {};
template <>
struct Table<AdamW> : AdamTable<AdamWOptions> {};

template struct TableParamState<Adam, AdamParamState>;
template class OptimizerOf<Adam, AdamOptions>;
template class OptimizerOf<AdamW, AdamWOptions>;

}  // namespace sconce::optim
