#include "training/settings.hpp"

#include <set>

#include "sconce/repr.hpp"

namespace sconce {

namespace {

// Adds the values in `value`, except those with keys in `without`.
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

// A scheduler's state has the rates that it set last.
bool is_scheduler(const c10::IValue& state) {
  return state.isGenericDict() && state.toGenericDict().contains("_last_lr");
}

bool is_plateau(const c10::IValue& state) {
  return state.toGenericDict().contains("mode_worse");
}

}  // namespace

Settings settings_of(const NamedStates& states) {
  Settings settings;
  const std::set<std::string> counters = {
      "last_epoch",       "_last_lr",       "_step_count", "best",
      "cooldown_counter", "num_bad_epochs", "T_cur",       "T_i"};
  // A PlateauScheduling does not take the mode from a file.
  auto counters_and_mode = counters;
  counters_and_mode.insert({"mode", "mode_worse"});
  c10::IValue groups;
  bool is_scheduled = false;
  for (const auto& [name, part] : states) {
    if (name == "model") continue;
    const auto state = part.state_dict();
    if (name == "optimizer") groups = state.toGenericDict().at("param_groups");
    if (!is_scheduler(state)) continue;
    add_settings(name, state, is_plateau(state) ? counters_and_mode : counters, settings);
    is_scheduled = true;
  }
  const std::set<std::string> scheduled = {"lr", "momentum", "betas"};
  add_settings("param_groups", groups, is_scheduled ? scheduled : std::set<std::string>(),
               settings);
  return settings;
}

std::string describe_changes(const Settings& given, const Settings& now) {
  std::string text;
  for (const auto& [name, value] : given) {
    const auto found = now.find(name);
    if (found == now.end() || found->second == value) continue;
    text += (text.empty() ? "" : ", ") + name + " " + found->second + " instead of " + value;
  }
  return text;
}

}  // namespace sconce
