#include "fit_progress.hpp"

#include <set>

#include "sconce/repr.hpp"
#include "state_values.hpp"

namespace sconce {

c10::IValue as_ivalue(const FitProgress& progress) {
  c10::impl::GenericList epochs(c10::AnyType::get());
  for (const auto& epoch : progress.epochs) {
    auto dict = string_dict();
    dict.insert("epoch", static_cast<int64_t>(epoch.epoch));
    dict.insert("loss", epoch.loss);
    dict.insert("train_acc", epoch.train_acc);
    dict.insert("test_acc", epoch.test_acc);
    dict.insert("examples", epoch.examples);
    dict.insert("seconds", epoch.seconds);
    epochs.push_back(dict);
  }
  auto dict = string_dict();
  dict.insert("batches", progress.batches);
  dict.insert("accumulate", progress.accumulate);
  dict.insert("epochs", epochs);
  dict.insert("sums", progress.sums);
  dict.insert("seconds", progress.seconds);
  return dict;
}

FitProgress as_fit_progress(const c10::IValue& value) {
  const std::string where = "sconce::Trainer::fit: a checkpoint's 'extra'";
  FitProgress progress = {.batches = require_count(value, "batches", where),
                          .accumulate = require_count(value, "accumulate", where),
                          .sums = require_tensor(value, "sums", where),
                          .seconds = require_number(value, "seconds", where)};
  for (const auto& epoch : require_list(value, "epochs", where)) {
    EpochMetrics metrics = {.epoch = static_cast<int>(require_count(epoch, "epoch", where)),
                            .loss = require_number(epoch, "loss", where),
                            .train_acc = require_number(epoch, "train_acc", where),
                            .examples = require_count(epoch, "examples", where),
                            .seconds = require_number(epoch, "seconds", where)};
    if (!require(epoch, "test_acc", where).isNone()) {
      metrics.test_acc = require_number(epoch, "test_acc", where);
    }
    progress.epochs.push_back(metrics);
  }
  return progress;
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
  const auto groups = require(optimizer, "param_groups", "sconce::Trainer::fit");
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
