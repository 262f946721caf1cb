#include "capture/compiled_step.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "failure_of.hpp"
#include "nn/keep_generator.hpp"
#include "sconce/stopwatch.hpp"

namespace sconce::detail {

namespace {

constexpr auto step_name = "sconce::CapturedStep";
constexpr size_t timed_calls = 10;  // per variant
constexpr int max_comparisons = 5;

// Returns the maximum allowed difference, relative to the norm of the values. The compiled code
// computes in types with at least `bits` bits. Compiled code performs additions in a different
// order and rounds to 16 bits at different points.
double tolerance_at(int bits) {
  return bits >= 64 ? 1e-6 : bits >= 32 ? 1e-3 : 5e-2;
}

double norm_of(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>();
}

// The compiled and replayed values of one tensor in a part.
struct Pair {
  at::Tensor compiled;
  at::Tensor replayed;
};

double root_mean_square(const at::Tensor& tensor) {
  const double norm = norm_of(tensor);
  return std::isfinite(norm) ? norm / std::sqrt(static_cast<double>(tensor.numel())) : 0;
}

bool is_compared_by_norm(const at::Tensor& tensor) {
  return tensor.is_floating_point() && tensor.numel() > 0;
}

// Returns the distance between the compiled and the replayed values, relative to the norm of the
// replayed values. The denominator is at least one thousandth of the largest value in the part,
// because rounding produces small nonzero values where the exact result is 0. Infinities and NaNs
// are considered equal if the compiled and the replayed values contain them at the same positions.
double difference(const Pair& pair, double largest) {
  if (!is_compared_by_norm(pair.replayed)) {
    return at::equal(pair.compiled, pair.replayed) ? 0 : HUGE_VAL;
  }
  const auto replayed = pair.replayed.to(at::kDouble);
  const auto compiled = pair.compiled.to(at::kDouble);
  const auto is_same =
      compiled.eq(replayed).logical_or(compiled.isnan().logical_and(replayed.isnan()));
  const double norm = norm_of(compiled.sub(replayed).masked_fill(is_same, 0));
  const auto finite = replayed.masked_fill(replayed.isfinite().logical_not(), 0);
  const double smallest = largest * std::sqrt(static_cast<double>(replayed.numel())) / 1000;
  return norm == 0 ? 0 : norm / std::max(norm_of(finite), smallest);
}

bool are_finite(const std::vector<Pair>& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return !pair.replayed.is_floating_point() || pair.replayed.isfinite().all().item<bool>();
  });
}

// Returns whether the memory is neither an input of the step nor changed by a replay. The values in
// unchanged memory are not meaningful. For example, batch normalization does not compute batch
// means in evaluation mode.
bool has_no_values(const StepTrace& trace, const at::Tensor& memory, const at::Tensor& before) {
  const auto* const storage = memory.storage().unsafeGetStorageImpl();
  const bool is_input =
      std::any_of(trace.inputs.begin(), trace.inputs.end(),
                  [storage](const Input& input) { return input.storage == storage; });
  return !is_input && at::equal(memory.view(at::kByte), before.view(at::kByte));
}

// Returns a description of the first difference that exceeds the tolerance, or an empty string if
// there is none.
std::string difference_in(const std::vector<Pair>& pairs, double tolerance) {
  double largest = 0;
  for (const auto& pair : pairs) {
    if (is_compared_by_norm(pair.replayed)) {
      largest = std::max(largest, root_mean_square(pair.replayed));
    }
  }
  for (const auto& pair : pairs) {
    const double found = difference(pair, largest);
    if (found <= tolerance) continue;
    return c10::str(step_name, ": expected compiled code to match the replay within ", tolerance,
                    " relative to the norm of the values, got ", found, " for ",
                    pair.replayed.sizes(), " of ", pair.replayed.scalar_type());
  }
  return {};
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// Replaces calls in the step with compiled calls.
RecordedStep::Calls replaced(const RecordedStep::Calls& calls, std::vector<CompiledCall> by) {
  RecordedStep::Calls all;
  size_t next = 0;
  for (auto& call : by) {
    all.insert(all.end(), calls.begin() + static_cast<std::ptrdiff_t>(next),
               calls.begin() + static_cast<std::ptrdiff_t>(call.begin));
    next = call.end;
    all.emplace_back(std::move(call));
  }
  all.insert(all.end(), calls.begin() + static_cast<std::ptrdiff_t>(next), calls.end());
  return all;
}

int64_t median_ns(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return std::llround(*middle * 1e9);
}

// Returns the mean time over all processes.
double mean_of(const StepVotes& votes, int64_t StepVote::* time) {
  double sum = 0;
  for (const auto& vote : votes) sum += static_cast<double>(vote.*time);
  return sum / static_cast<double>(votes.size());
}

std::string microseconds(double ns) {
  return std::to_string(std::llround(ns / 1000)) + " us";
}

StepVote::Form form_of(StepMode mode) {
  return mode == StepMode::compiled ? StepVote::compiled : StepVote::replay;
}

StepMode mode_of(int64_t form) {
  return form == StepVote::compiled ? StepMode::compiled : StepMode::replayed;
}

}  // namespace

CompiledStep::CompiledStep(RecordedStep& step, StepCompiler* compiler)
    : step_(step), compiler_(compiler) {
  if (compiler_ == nullptr) return;
  try {
    compilation_ = compiler_->compile(step_);
    state_ = State::compiling;
    reason_ = "the compiler has not finished";
    if (compiler_->options().wait) compilation_->wait();
  } catch (const c10::Error& error) {
    fall_back(error.what_without_backtrace());
  }
}

void CompiledStep::fall_back(const std::string& reason) {
  TORCH_WARN(step_name, ": the step is replayed instead of compiled: ", reason);
  settle(StepMode::replayed, reason);
}

void CompiledStep::settle(StepMode mode, std::string reason) {
  state_ = mode == StepMode::compiled ? State::compiled : State::replay;
  reason_ = std::move(reason);
  if (state_ == State::replay) compiled_.clear();
  compilation_.reset();
}

void CompiledStep::keep(StepMode mode, std::string reason) {
  compiler_->keep(compilation_->key(), mode);
  settle(mode, std::move(reason));
}

void CompiledStep::run() {
  if (state_ == State::compiling && compilation_->is_over()) return take();
  if (state_ == State::comparing) return compare();
  if (state_ == State::timing) return time();
  step_.replay(state_ == State::compiled ? compiled_ : step_.calls);
}

// Retrieves the compiled code and compares its results with the results of a replay in this step.
void CompiledStep::take() {
  try {
    compiled_ = replaced(step_.calls, compilation_->take());
  } catch (const c10::Error& error) {
    fall_back(error.what_without_backtrace());
    return step_.replay();
  }
  state_ = State::comparing;
  reason_ = "the compiled code is being compared with the replay";
  compare();
}

// Compiled code may produce NaNs at different positions, so if a step overflows, a later step is
// also compared.
void CompiledStep::compare() {
  Finding finding;
  step_.replay(compared(finding));
  if (!finding.reason.empty()) return fall_back(finding.reason);
  if (finding.is_finite || ++comparisons_ == max_comparisons) end_comparison();
}

void CompiledStep::end_comparison() {
  state_ = State::compared;
  reason_ = "the processes in the group have not agreed on a variant";
  preferred_ = compiler_->options().keep == KeptStep::compiled
                   ? StepMode::compiled
                   : compiler_->kept(compilation_->key());
}

StepVote CompiledStep::vote() const {
  switch (state_) {
    case State::compiling:
    case State::comparing:
      return {};
    case State::compared:
      return {.stage = StepVote::compared,
              .form = preferred_ ? form_of(*preferred_) : StepVote::none};
    case State::timing:
      return {.stage = StepVote::timing};
    case State::timed:
      return {.stage = StepVote::timed,
              .compiled_ns = median_ns(compiled_seconds_),
              .replay_ns = median_ns(replayed_seconds_)};
    case State::replay:
      return {.stage = StepVote::settled, .form = StepVote::replay};
    case State::compiled:
      return {.stage = StepVote::settled, .form = StepVote::compiled};
  }
  return {};
}

void CompiledStep::choose(const StepVotes& votes) {
  const auto [first, last] = std::minmax_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.stage < b.stage; });
  const bool is_undecided = vote().stage == StepVote::undecided;
  if (is_settled() || is_undecided || first->stage == StepVote::undecided) return;
  if (last->stage == StepVote::settled) {
    return settle(mode_of(last->form), "another process in the group keeps this variant");
  }
  const bool is_alike = std::all_of(votes.begin(), votes.end(), [&](const auto& vote) {
    return vote.form != StepVote::none && vote.form == votes[0].form;
  });
  if (is_alike) {
    const bool is_option = compiler_->options().keep == KeptStep::compiled;
    keep(mode_of(votes[0].form),
         is_option ? "compiled steps are kept" : "an earlier run kept this variant");
  } else if (state_ == State::compared) {
    state_ = State::timing;
    reason_ = "both variants are being timed";
  } else if (first->stage == StepVote::timed) {
    const double compiled = mean_of(votes, &StepVote::compiled_ns);
    const double replay = mean_of(votes, &StepVote::replay_ns);
    keep(compiled < replay ? StepMode::compiled : StepMode::replayed,
         "a compiled step takes " + microseconds(compiled) + ", a replay " + microseconds(replay));
  }
}

// Returns the calls for a replay that also runs each part's compiled code and compares the results.
RecordedStep::Calls CompiledStep::compared(Finding& finding) const {
  RecordedStep::Calls calls = compiled_;
  for (auto& call : calls) {
    auto* const compiled = std::get_if<CompiledCall>(&call);
    if (compiled == nullptr) continue;
    call = HostCall{[this, &finding, part = *compiled] { compare(part, finding); }, {}};
  }
  return calls;
}

void CompiledStep::compare(const CompiledCall& part, Finding& finding) const {
  auto& reason = finding.reason;
  const auto before = copies_of(part.written);
  std::vector<at::Tensor> results;
  if (reason.empty()) {
    const nn::KeepGenerator kept;  // so that the replay draws the same numbers
    const auto failure = failure_of([&] { results = run_code(part); });
    if (!failure.empty()) reason = "the compiled code throws: " + failure;
  }
  const auto written = copies_of(part.written);
  for (size_t i = 0; i < before.size(); ++i) part.written[i].copy_(before[i]);
  step_.replay_part(part.begin, part.end);
  if (!reason.empty()) return;
  std::vector<Pair> pairs;
  for (size_t i = 0; i < results.size(); ++i) pairs.push_back({results[i], part.results[i]});
  for (size_t i = 0; i < written.size(); ++i) {
    const auto& memory = part.written[i];
    if (memory.storage().data() == nullptr || has_no_values(step_.trace, memory, before[i]))
      continue;
    pairs.push_back({written[i], memory});
  }
  finding.is_finite &= are_finite(pairs);
  if (!finding.is_finite && comparisons_ + 1 < max_comparisons) return;
  reason = difference_in(pairs, tolerance_at(part.bits));
}

// Alternates between the compiled and replayed variants, because the machine's speed drifts over
// time.
void CompiledStep::time() {
  const bool compiled = compiled_seconds_.size() < replayed_seconds_.size();
  const Stopwatch stopwatch;
  step_.replay(compiled ? compiled_ : step_.calls);
  (compiled ? compiled_seconds_ : replayed_seconds_).push_back(stopwatch.seconds());
  if (compiled_seconds_.size() == timed_calls) state_ = State::timed;
}

}  // namespace sconce::detail
