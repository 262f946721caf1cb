// Resumes the checkpoints that the library of sconce 0.2 wrote.
#include <filesystem>

#include "catch.hpp"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "reference/checkpoints_of_0.2/trainings.hpp"
#pragma GCC diagnostic pop
#include "sconce/training/model_checkpoint.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

namespace {

namespace fs = std::filesystem;
using sconce::test::of_0_2::Training;

struct StepCounter : sconce::TrainerCallback {
  void on_after_step(sconce::Fit&) override { ++steps; }
  int64_t steps = 0;
};

// The results without the times, and all numbers that a training leaves.
std::vector<double> numbers_of(const Training& training, const sconce::FitResult& result) {
  std::vector<double> numbers;
  for (const auto& epoch : result.epochs) {
    numbers.push_back(epoch.loss);
    for (const auto& [name, value] : epoch.metrics) numbers.push_back(value);
  }
  const auto add = [&](const torch::Tensor& tensor) { numbers.push_back(tensor.item<double>()); };
  for (const auto& parameter : training.model->parameters()) add(parameter);
  add(training.model->batches);
  if (training.averages) {
    for (const auto& average : training.averages->state_dict()) add(average.value());
  }
  if (const auto& scaler = training.scaler.toGenericDict(); !scaler.empty()) {
    numbers.push_back(scaler.at("scale").toDouble());
  }
  for (const auto& group : training.optimizer->param_groups()) {
    numbers.push_back(group.options().get_lr());
  }
  return numbers;
}

void check_old_file(const fs::path& file, const std::function<void(Training&)>& make_ready,
                    int64_t batches_before) {
  INFO(file);
  const sconce::test::TempDir folder;
  fs::copy_file(file, folder.path() / file.filename());
  sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
  sconce::ModelCheckpoint saving(checkpoint, {.monitor = "test_loss"});
  const sconce::test::Warnings warnings;
  Training whole, resumed;
  make_ready(whole);
  make_ready(resumed);
  StepCounter of_whole, of_resumed;
  torch::manual_seed(1);
  const auto expected = whole.fit({&of_whole});
  torch::manual_seed(2);  // the state of the generator comes from the file
  const auto result = resumed.fit({&of_resumed, &saving});
  CHECK((of_whole.steps - of_resumed.steps) * whole.options.accumulate_grad_batches ==
        batches_before);
  CHECK(result.stopped == expected.stopped);
  CHECK(numbers_of(resumed, result) == numbers_of(whole, expected));
  for (const auto& warning : warnings.messages()) {  // none of options that differ from the file's
    CHECK_THAT(warning, Catch::Matchers::StartsWith("sconce::Trainer: fp16 on a CPU"));
  }
}

}  // namespace

TEST_CASE("checkpoints that version 0.2 saved within and after an epoch resume bit for bit") {
  const fs::path checkpoints = fs::path(SCONCE_TESTS_DIR) / "reference/checkpoints_of_0.2";
  for (const auto& [name, make_ready] : sconce::test::of_0_2::trainings()) {
    check_old_file(checkpoints / name / "checkpoint-000001-00000002.pt", make_ready, 6);
    check_old_file(checkpoints / name / "checkpoint-000002-00000000.pt", make_ready, 8);
  }
}
