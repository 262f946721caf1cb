#include "training/settings.hpp"

#include <set>

#include "sconce/repr.hpp"

namespace sconce {

namespace {

// Adds the settings in `value`, except for the keys in `without`.
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
  Settings settings;
  bool is_scheduled = false;
  c10::IValue groups;
  for (const auto& [name, part] : states) {
    const auto options = part.options();
    if (name == "optimizer") {
      groups = options;
    } else if (!options.isNone()) {
      add_settings(name, options, {}, settings);
      is_scheduled = true;
    }
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
