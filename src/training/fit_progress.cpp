#include "training/fit_progress.hpp"

#include "state/state_visitor.hpp"

namespace sconce {

// The keys are the metric names. If a metric has no value, its entry is None.
void visit_state(EpochMetrics& epoch, StateVisitor& state) {
  state.count("epoch", epoch.epoch);
  state("loss", epoch.loss);
  state.count("examples", epoch.examples);
  state("seconds", epoch.seconds);
  const auto is_other = [](const std::string& name) {
    return name == "epoch" || name == "examples" || name == "seconds";
  };
  for (const auto& [name, value] : epoch.metrics) {
    TORCH_CHECK(!is_other(name), "sconce::Fit: expected callbacks to avoid the reserved name '",
                name, "', got a callback value with this name");
    state.write_only(name.c_str(), value);
  }
  for (const auto& entry : state.dict()) {
    const std::string& name = entry.key().toStringRef();
    if (is_other(name) || epoch.contains(name) || entry.value().isNone()) continue;
    double value = 0;
    state(name.c_str(), value);
    epoch.metrics.insert(name, value);
  }
}

void visit_state(FitProgress& progress, StateVisitor& state) {
  state.count("batches", progress.batches);
  state("accumulate", progress.accumulate, int64_t{0});
  state.any_length("epochs", progress.epochs);
  state("sums", progress.sums);
  // This key exists only if the steps in the epoch return named values.
  if (!progress.values.empty() || state.dict().contains("values")) {
    state.any_length("values", progress.values);
  }
  state("seconds", progress.seconds);
  state.optional_value("compiler", progress.compiler);
  state.optional_value("train", progress.train);
}

}  // namespace sconce
