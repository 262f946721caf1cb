// Generates the checkpoints in this folder. README.md explains how to compile it with sconce 0.2.
#include <filesystem>

#include "sconce/training/model_checkpoint.hpp"
#include "trainings.hpp"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc != 2) return 2;
  for (const auto& [name, make_ready] : sconce::test::of_0_2::trainings()) {
    const fs::path folder = fs::path(argv[1]) / name;
    const fs::path all = folder / "all";
    torch::manual_seed(1);
    sconce::test::of_0_2::Training training;
    make_ready(training);
    training.options.every_n_train_steps = training.options.accumulate_grad_batches == 1 ? 2 : 1;
    sconce::Checkpoint checkpoint(all, {.keep_last = 100});
    sconce::ModelCheckpoint saving(checkpoint, {.monitor = "test_loss"});
    const auto result = training.fit({&saving});
    sconce::test::of_0_2::write_numbers(folder / "numbers.txt",
                                        sconce::test::of_0_2::numbers_of(training, result));
    for (const char* file : {"checkpoint-000001-00000002.pt", "checkpoint-000002-00000000.pt"}) {
      fs::copy_file(all / file, folder / file);
    }
    fs::remove_all(all);
  }
}
