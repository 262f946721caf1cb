#include "training/settings.hpp"

#include <algorithm>
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

}  // namespace

Settings settings_of(const NamedStates& states) {
  const auto state_of = [&](const char* name) {
    const auto found = std::find_if(states.begin(), states.end(),
                                    [&](const auto& part) { return part.first == name; });
    return found == states.end() ? c10::IValue() : found->second.state_dict();
  };
  Settings settings;
  const std::set<std::string> counters = {
      "last_epoch",       "_last_lr",       "_step_count", "best",
      "cooldown_counter", "num_bad_epochs", "T_cur",       "T_i"};
  bool is_scheduled = false;
  for (const char* name : {"scheduler", "plateau"}) {
    const auto state = state_of(name);
    if (state.isNone()) continue;
    add_settings(name, state, counters, settings);
    is_scheduled = true;
  }
  const auto groups = state_of("optimizer").toGenericDict().at("param_groups");
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
