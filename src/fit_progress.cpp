#include "fit_progress.hpp"

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
  dict.insert("epochs", epochs);
  dict.insert("sums", progress.sums);
  dict.insert("seconds", progress.seconds);
  return dict;
}

FitProgress as_fit_progress(const c10::IValue& value) {
  const std::string where = "sconce::Trainer::fit: a checkpoint's 'extra'";
  FitProgress progress = {.batches = require_count(value, "batches", where),
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

}  // namespace sconce
