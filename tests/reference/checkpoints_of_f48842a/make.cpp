// Generates the files in this folder. README.md explains how to compile it with revision f48842a.
#include <torch/serialize.h>

#include <filesystem>
#include <sstream>

#include "runs.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/training/model_checkpoint.hpp"

namespace {

namespace fs = std::filesystem;
using namespace sconce::test::of_f48842a;

c10::impl::GenericDict dict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

void make_checkpoint(const fs::path& folder, const std::function<void(Training&)>& make_ready) {
  const fs::path all = folder / "all";
  torch::manual_seed(1);
  Training training;
  make_ready(training);
  sconce::Checkpoint checkpoint(all, {.keep_last = 100});
  sconce::ModelCheckpoint saving(checkpoint, {.monitor = "test_loss", .every_n_train_steps = 2});
  const auto result = training.fit({&saving});
  sconce::test::of_0_2::write_numbers(folder / "numbers.txt",
                                      sconce::test::of_0_2::numbers_of(training, result));
  const char* file = "checkpoint-000001-00000002.pt";
  fs::copy_file(all / file, folder / file);
  fs::remove_all(all);
}

c10::IValue bytes_of(const sconce::optim::Optimizer& optimizer) {
  std::ostringstream archive;
  torch::save(optimizer, archive);
  auto bytes = archive.str();
  const auto size = static_cast<int64_t>(bytes.size());
  return torch::from_blob(bytes.data(), {size}, torch::kByte).clone();
}

// Returns the state of a run as a dict and, if requested, as a LibTorch archive. The result also
// contains the parameters at that point and all values at the end of the run.
c10::IValue make_run(const Run& run, bool with_archive) {
  const auto parameters = make_parameters();
  const auto optimizer = make_optimizer(run, parameters);
  step(run, *optimizer, parameters, 0, saved_after);
  auto saved = dict();
  if (with_archive) saved.insert("archive", bytes_of(*optimizer));
  saved.insert("state", optimizer->state_dict().deepcopy());  // the next steps change its tensors
  c10::List<torch::Tensor> values;
  for (const auto& parameter : parameters) values.push_back(parameter.detach().clone());
  saved.insert("parameters", values);
  step(run, *optimizer, parameters, saved_after, all_steps);
  saved.insert("end", all_numbers(*optimizer, parameters));
  return saved;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const auto& [name, make_ready] : trainings()) {
    make_checkpoint(fs::path(argv[1]) / name, make_ready);
  }
  for (const auto& [name, of_optimizer] : runs()) {
    auto all = dict();
    for (const auto& run : of_optimizer) {
      const bool with_archive = &run == &of_optimizer.front() || run.first_steps_overflow;
      all.insert(run.name, make_run(run, with_archive));
    }
    sconce::io::save_torch(fs::path(argv[1]) / name / "runs.pt", all);
  }
}
