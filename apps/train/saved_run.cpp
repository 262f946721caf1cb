#include "saved_run.hpp"

#include "sconce/io/torch_file.hpp"

namespace train {

namespace {

sconce::EpochMetrics epoch_of(const c10::IValue& state) {
  sconce::EpochMetrics epoch;
  for (const auto& entry : state.toGenericDict()) {
    const std::string& name = entry.key().toStringRef();
    const c10::IValue& value = entry.value();
    if (name == "epoch") {
      epoch.epoch = static_cast<int>(value.toInt());
    } else if (name == "examples") {
      epoch.examples = value.toInt();
    } else if (name == "loss") {
      epoch.loss = value.toDouble();
    } else if (name == "seconds") {
      epoch.seconds = value.toDouble();
    } else if (value.isDouble()) {  // a metric without a value is None
      epoch.metrics.insert(name, value.toDouble());
    }
  }
  return epoch;
}

}  // namespace

SavedRun read_saved_run(const std::filesystem::path& checkpoint) {
  const auto file = sconce::io::load_torch(checkpoint).toGenericDict();
  SavedRun run{.batch = file.at("batch").toInt()};
  for (const c10::IValue& epoch : file.at("extra").toGenericDict().at("epochs").toListRef()) {
    run.epochs.push_back(epoch_of(epoch));
  }
  if (file.contains("scheduler")) run.scheduler = file.at("scheduler");
  if (file.contains("schedule")) {
    run.schedule_epochs = file.at("schedule").toGenericDict().at("epochs").toInt();
  }
  return run;
}

}  // namespace train
