// Resumes checkpoints that were written by older versions of the library.
#include <algorithm>
#include <filesystem>

#include "catch.hpp"
#include "reference/checkpoints_of_f48842a/runs.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "support/recorded_numbers.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

namespace {

namespace fs = std::filesystem;
using sconce::test::of_0_2::Training;

struct StepCounter : sconce::TrainerCallback {
  void on_after_optimizer_step(sconce::Fit&) override { ++steps; }
  int64_t steps = 0;
};

bool same(const std::vector<double>& a, const std::vector<double>& b, bool bit_for_bit) {
  if (bit_for_bit) return a == b;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::abs(x - y) <= 1e-5 + 1.3e-6 * std::abs(y);
  });
}

// Returns whether the values equal the final values recorded with the old version. The old values
// were recorded either once for all CPUs or separately for CPUs with and without AVX2.
bool are_recorded(const std::vector<double>& numbers, const fs::path& folder, bool bit_for_bit) {
  return std::ranges::any_of(fs::directory_iterator(folder), [&](const auto& entry) {
    return entry.path().extension() == ".txt" &&
           same(numbers, sconce::test::of_0_2::read_numbers(entry.path()), bit_for_bit);
  });
}

void check_old_file(const fs::path& file, const std::function<void(Training&)>& make_ready,
                    int64_t batches_before, bool bit_for_bit) {
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
  torch::manual_seed(2);  // the generator state comes from the file
  const auto result = resumed.fit({&of_resumed, &saving});
  CHECK((of_whole.steps - of_resumed.steps) * whole.options.accumulate_grad_batches ==
        batches_before);
  CHECK(result.stopped == expected.stopped);
  CHECK(same(numbers_of(resumed, result), numbers_of(whole, expected), bit_for_bit));
  CHECK(are_recorded(numbers_of(resumed, result), file.parent_path(), bit_for_bit));
  for (const auto& warning : warnings.messages()) {  // none mention options that the file changes
    CHECK_THAT(warning, Catch::Matchers::StartsWith("sconce::Trainer: fp16 on a CPU"));
  }
}

}  // namespace

TEST_CASE("checkpoints that version 0.2 saved mid-epoch or after an epoch resume bit for bit") {
  const fs::path checkpoints = fs::path(SCONCE_TESTS_DIR) / "reference/checkpoints_of_0.2";
  const bool bit_for_bit = sconce::test::is_recorded_version();
  for (const auto& [name, make_ready] : sconce::test::of_0_2::trainings()) {
    check_old_file(checkpoints / name / "checkpoint-000001-00000002.pt", make_ready, 6,
                   bit_for_bit);
    check_old_file(checkpoints / name / "checkpoint-000002-00000000.pt", make_ready, 8,
                   bit_for_bit);
  }
}

TEST_CASE("runs with each optimizer resume bit for bit from checkpoints saved by commit f48842a") {
  const fs::path checkpoints = fs::path(SCONCE_TESTS_DIR) / "reference/checkpoints_of_f48842a";
  const bool rounds_as_recorded = sconce::test::rounds_as_recorded();
  for (const auto& [name, make_ready] : sconce::test::of_f48842a::trainings()) {
    // The other optimizers take no square root, or run fused kernels, which do not call LibTorch's.
    const bool bit_for_bit = name == "RMSprop" || name == "NAdam"
                                 ? rounds_as_recorded
                                 : sconce::test::is_recorded_version();
    check_old_file(checkpoints / name / "checkpoint-000001-00000002.pt", make_ready, 6,
                   bit_for_bit);
  }
}
