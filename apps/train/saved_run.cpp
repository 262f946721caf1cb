#include "saved_run.hpp"

#include <ATen/core/Dict.h>
#include <c10/util/Exception.h>

#include <iterator>
#include <string>
#include <utility>

#include "sconce/io/torch_file.hpp"

namespace train {

namespace {

// The maximum count in a checkpoint. A double can represent this value exactly, and sums of such
// counts do not overflow.
constexpr int64_t max_count = int64_t{1} << 53;

// Reads a dict from a checkpoint. Error messages contain the file name and the sequence of keys
// that leads to the value.
class SavedDict {
 public:
  SavedDict(std::string file, const c10::IValue& value, std::string keys = {})
      : file_(std::move(file)), keys_(std::move(keys)) {
    expect(value.isGenericDict(), keys_, "a dict", value);
    dict_ = value.toGenericDict();
    for (const auto& entry : dict_) {
      expect(entry.key().isString(), keys_, "a dict with keys of type str", entry.key());
    }
  }

  const c10::impl::GenericDict& entries() const { return dict_; }

  bool contains(const char* key) const {
    const auto found = dict_.find(key);
    return found != dict_.end() && !found->value().isNone();
  }

  c10::IValue value(const std::string& key) const {
    const auto found = dict_.find(key);
    TORCH_CHECK(found != dict_.end(), file_, ": ", keys_, keys_.empty() ? "" : ": ",
                "expected a dict with the key '", key, "'");
    return found->value();
  }

  SavedDict dict(const char* key) const { return {file_, value(key), keys_to(key)}; }

  std::vector<SavedDict> dicts(const char* key) const {
    const c10::IValue all = value(key);
    expect(all.isList(), keys_to(key), "a list", all);
    std::vector<SavedDict> found;
    for (const c10::IValue& one : all.toListRef()) {
      found.emplace_back(file_, one, keys_to(key) + "[" + std::to_string(found.size()) + "]");
    }
    return found;
  }

  int64_t count(const char* key, int64_t least = 0, int64_t most = max_count) const {
    const c10::IValue number = value(key);
    const bool fits = number.isInt() && number.toInt() >= least && number.toInt() <= most;
    expect(fits, keys_to(key),
           "an int from " + std::to_string(least) + " to " + std::to_string(most), number);
    return number.toInt();
  }

  double number(const std::string& key) const {
    const c10::IValue number = value(key);
    expect(number.isDouble() || number.isInt(), keys_to(key), "a number", number);
    return number.toScalar().toDouble();
  }

 private:
  std::string keys_to(const std::string& key) const { return keys_ + "['" + key + "']"; }

  void expect(bool fits, const std::string& keys, const std::string& expected,
              const c10::IValue& got) const {
    TORCH_CHECK(fits, file_, ": ", keys, keys.empty() ? "" : ": ", "expected ", expected, ", got ",
                got.isInt() ? std::to_string(got.toInt()) : got.tagKind());
  }

  std::string file_;
  std::string keys_;  // for example ['extra']['epochs'][0]
  c10::impl::GenericDict dict_{c10::StringType::get(), c10::AnyType::get()};
};

sconce::EpochMetrics epoch_of(const SavedDict& saved, int64_t number) {
  sconce::EpochMetrics epoch;
  epoch.epoch = static_cast<int>(saved.count("epoch", number, number));
  epoch.examples = saved.count("examples");
  epoch.loss = saved.number("loss");
  epoch.seconds = saved.number("seconds");
  for (const auto& entry : saved.entries()) {
    const std::string& name = entry.key().toStringRef();
    const bool is_other = name == "epoch" || name == "examples" || name == "seconds";
    if (is_other || epoch.contains(name) || entry.value().isNone()) continue;  // None: no value
    epoch.metrics.insert(name, saved.number(name));
  }
  return epoch;
}

}  // namespace

SavedRun read_saved_run(const std::filesystem::path& checkpoint) {
  const SavedDict file(checkpoint.string(), sconce::io::load_torch(checkpoint));
  const SavedDict progress = file.dict("extra");
  SavedRun run;
  for (const SavedDict& epoch : progress.dicts("epochs")) {
    run.epochs.push_back(epoch_of(epoch, std::ssize(run.epochs) + 1));
  }
  TORCH_CHECK(file.count("epoch") == std::ssize(run.epochs), checkpoint.string(),
              ": ['epoch']: expected ", run.epochs.size(),
              ", the length of ['extra']['epochs'], got ", file.count("epoch"));
  run.batch = file.count("batch", 0, progress.count("batches"));
  if (file.contains("scheduler")) {
    const SavedDict scheduler = file.dict("scheduler");
    run.scheduler = scheduler.entries();
    run.scheduler_steps = scheduler.count("last_epoch");
  }
  if (file.contains("schedule")) run.schedule_epochs = file.dict("schedule").count("epochs");
  return run;
}

}  // namespace train
