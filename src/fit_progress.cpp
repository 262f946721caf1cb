#include "fit_progress.hpp"

#include <set>

#include "sconce/repr.hpp"
#include "state/state_visitor.hpp"

namespace sconce {

void visit_state(EpochMetrics& epoch, StateVisitor& state) {
  state.count("epoch", epoch.epoch);
  state("loss", epoch.loss);
  state("train_acc", epoch.train_acc);
  state("test_acc", epoch.test_acc);
  state.count("examples", epoch.examples);
  state("seconds", epoch.seconds);
}

void visit_state(FitProgress& progress, StateVisitor& state) {
  state.count("batches", progress.batches);
  state.count("accumulate", progress.accumulate);
  state.any_length("epochs", progress.epochs);
  state("sums", progress.sums);
  state("seconds", progress.seconds);
}

namespace {

// Adds the values below `value`, but for those with such keys.
void add_settings(const std::string& name, const c10::IValue& value,
                  const std::set<std::string>& without, Settings& settings) {
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      const std::string key = entry.key().toStringRef();
      if (!without.contains(key)) add_settings(name + "." + key, entry.value(), without, settings);
    }
  } else if (value.isList()) {
    const auto values = value.toListRef();
    for (size_t i = 0; i < values.size(); ++i) {
      add_settings(name + "[" + std::to_string(i) + "]", values[i], without, settings);
    }
  } else {
    settings[name] = value.isDouble() ? repr(value.toDouble()) : c10::str(value);
  }
}

}  // namespace

Settings settings_of(const c10::IValue& optimizer, const c10::IValue& scheduler) {
  Settings settings;
  const bool is_scheduled = !scheduler.isNone();
  const auto groups = optimizer.toGenericDict().at("param_groups");
  const std::set<std::string> scheduled = {"lr", "momentum", "betas"};
  add_settings("param_groups", groups, is_scheduled ? scheduled : std::set<std::string>(),
               settings);
  if (is_scheduled) {
    add_settings("scheduler", scheduler, {"last_epoch", "_last_lr", "_step_count"}, settings);
  }
  return settings;
}

std::string describe_changes(const Settings& given, const Settings& now) {
  std::string text;
  for (const auto& [name, value] : given) {
    const auto found = now.find(name);
    if (found == now.end() || found->second == value) continue;
    text += (text.empty() ? "" : ", ") + name + " " + found->second + " in the place of " + value;
  }
  return text;
}

}  // namespace sconce
