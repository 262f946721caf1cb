// Tests sconce-train --export: the program it writes for a trained network and the predictions that
// the program makes.
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "support/check_refused.hpp"
#include "support/error_of.hpp"
#include "support/png.hpp"
#include "support/processes.hpp"
#include "train/program_file.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::program::Program;
using sconce::test::check_refused;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::png_of;
using sconce::test::run_train;
using sconce::test::RunResult;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

train::Task picture_task(int64_t side) {
  return {.shape = {3, side, side},
          .mean = {100, 110, 120},
          .std = {50, 60, 70},
          .classes = {"cat", "dog", "mouse"}};
}

train::Task table_task() {
  auto task = train::task_of_table(
      {{.name = "rooms"}, {.name = "roof", .categories = {"slate", "tile"}}, {.name = "price"}},
      "price");
  task.mean = {3, 0, 0, 200000};
  task.std = {2, 1, 1, 5000};
  return task;
}

train::TrainedModel made_model(const std::string& name, const train::Task& task) {
  torch::manual_seed(0);
  return {name, task, train::make_model(name, task.shape, task.outputs())};
}

torch::Tensor inputs_of(const train::Task& task, int64_t rows) {
  std::vector<int64_t> shape = {rows};
  shape.insert(shape.end(), task.shape.begin(), task.shape.end());
  return torch::randn(shape);
}

// Returns a CSV table of houses with their rooms, roofs, and prices. Both the price and the roof
// can be predicted from the other columns.
std::string small_houses() {
  std::string text = "rooms,roof,price\n";
  for (int i = 0; i < 60; ++i) {
    const int rooms = 1 + i * 7 % 5;
    text += std::to_string(rooms) + (i % 3 == 0 ? ",slate," : ",tile,") +
            std::to_string(100000 * rooms + (i % 3 == 0 ? 50000 : 0) + 1000 * (i % 7)) + '\n';
  }
  return text;
}

// Writes images for two classes, "dark" and "light".
void write_shades(const fs::path& folder) {
  for (int i = 0; i < 10; ++i) {
    for (const std::string name : {"dark", "light"}) {
      fs::create_directories(folder / name);
      const auto picture = torch::arange(3 * 12 * 10).add(7 * i).remainder(90).view({3, 12, 10});
      std::ofstream(folder / name / (std::to_string(i) + ".png"), std::ios::binary)
          << png_of((picture + (name == "dark" ? 0 : 150)).to(torch::kByte));
    }
  }
}

// Runs sconce-train, and checks that it succeeds.
RunResult ran_well(const std::string& arguments) {
  RunResult ran = run_train(arguments);
  INFO(arguments << ": " << ran.err);
  REQUIRE(ran.exit_code == 0);
  return ran;
}

// Trains with --out and --export, and checks that the two files produce the same predictions.
class ExportedRun {
 public:
  explicit ExportedRun(const std::string& arguments) {
    ran_well("--device cpu " + arguments + " --out " + folder_.path().string() + " --export " +
             program().string());
  }

  fs::path weights() const { return folder_.path() / "model.safetensors"; }
  fs::path program() const { return folder_.path() / "program.safetensors"; }

  void check_predictions(const std::string& inputs) const {
    const auto predicted = [&](const fs::path& file) {
      return ran_well("predict --weights " + file.string() + " " + inputs).out;
    };
    const std::string by_weights = predicted(weights());
    CHECK(!by_weights.empty());
    CHECK(predicted(program()) == by_weights);
  }

  // Checks that the exported program and the saved weights produce bitwise identical outputs for
  // several batch sizes.
  void check_outputs() const {
    const auto from_weights = train::load_predictor(weights());
    const auto from_program = train::load_predictor(program());
    const torch::NoGradGuard no_grad;
    for (const int64_t rows : {1, 17}) {
      const auto x = inputs_of(from_weights.task, rows);
      CHECK(from_program.forward(x).equal(from_weights.forward(x)));
    }
  }

 private:
  const TempDir folder_;
};

}  // namespace

TEST_CASE("every sconce-train model's exported program returns the same outputs as the network") {
  const TempDir folder;
  const torch::NoGradGuard no_grad;
  for (const auto& name : train::model_names()) {
    INFO(name);
    if (name == "resnet34" || name == "resnet50") continue;  // large; same layer types as resnet18
    auto model = made_model(name, picture_task(32));
    model.network->forward(inputs_of(model.task, 4));  // changes the BatchNorm statistics
    train::export_program(folder.path() / "program", model);
    CHECK(model.network->is_training());
    model.network->eval();
    const auto program = train::load_predictor(folder.path() / "program");
    for (const int64_t rows : {1, 3, 17}) {
      const auto x = inputs_of(model.task, rows);
      CHECK(program.forward(x).equal(model.network->forward(x)));
    }
  }
}

TEST_CASE("an exported program contains the weights, the task, named tensors, and an example") {
  const TempDir folder;
  const auto file = folder.path() / "program";
  const bool is_table = GENERATE(false, true);
  const auto model = made_model("mlp", is_table ? table_task() : picture_task(8));
  train::export_program(file, model);
  const auto program = Program::load(file);
  CHECK(program.inputs()[0].name == (is_table ? "rows" : "images"));
  CHECK(program.outputs()[0].name == (is_table ? "target" : "logits"));
  CHECK(program.device().is_cpu());
  const auto task = train::load_predictor(file).task;
  CHECK(train::model_metadata("mlp", task) == train::model_metadata("mlp", model.task));

  // The file is not memory-mapped, because a different memory alignment may change the last bits of
  // the results.
  const auto tensors = sconce::io::load_safetensors(file, {.mmap = false});
  for (const auto& item : sconce::nn::state_dict(*model.network)) {
    INFO(item.key());
    CHECK(tensors[item.key()].equal(item.value()));
  }
  const auto example = tensors["example.inputs." + program.inputs()[0].name];
  const auto outputs = tensors["example.outputs." + program.outputs()[0].name];
  CHECK(example.size(0) == 2);
  CHECK(program.run({example})[0].equal(outputs));
}

TEST_CASE("a program exported from a table run makes the same predictions as the run's weights") {
  const TempDir folder;
  const std::string table = folder.write("houses.csv", small_houses()).string();
  const std::string flags = GENERATE("--target price --model linear", "--target roof");
  const ExportedRun run("--data " + table + " --epochs 2 " + flags);
  run.check_predictions(table + " " + table);
  const auto other = folder.write("other.csv", "rooms,garden\n1,2\n");
  check_refused(run_train("predict --weights " + run.program().string() + " " + other.string()), 1,
                other.string() + ": ");
}

TEST_CASE("a program exported from an image run makes the same predictions as the run's weights") {
  const TempDir folder;
  write_shades(folder.path() / "pictures");
  const ExportedRun run("--data " + (folder.path() / "pictures").string() +
                        " --image-size 16 --model resnet --workers 2 --epochs 2 --augment");
  std::string pictures;
  for (const auto& name : names_in(folder.path() / "pictures/light")) {
    pictures += (folder.path() / "pictures/light" / name).string() + " ";
  }
  run.check_predictions(pictures);
}

TEST_CASE("an exported program matches the saved weights regardless of the training options") {
  const std::string flags = GENERATE("--model lenet --precision bf16 --graph --ema 0.9",
                                     "--model mlp --precision fp16 --accumulate 2",
                                     "--model resnet --fast-dev-run --batch-size 8");
  const ExportedRun run("--epochs 1 " + flags);
  run.check_outputs();
}

TEST_CASE("Python rebuilds an exported program and reproduces its example outputs", "[python]") {
  if (!fs::exists(SCONCE_PYTHON)) SKIP("this LibTorch is not from a Python package");
  const TempDir folder;
  const std::string file = (folder.path() / "program").string();
  train::export_program(file, made_model("resnet", picture_task(8)));
  const RunResult ran =
      sconce::test::run_program(SCONCE_BIN_DIR "/sconce-export " + file + " --check");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, StartsWith(file + ": largest difference "));
}

TEST_CASE(
    "resuming a finished run with --export exports the network and replaces an existing program") {
  const TempDir folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string flags = "--model linear --device cpu --epochs 2 --checkpoint ";
  ran_well(flags + path("saved"));
  train::export_program(path("resumed"), made_model("linear", table_task()));
  ran_well(flags + path("saved") + " --resume --export " + path("resumed"));
  ran_well(flags + path("whole") + " --export " + path("new/program"));
  CHECK(train::is_program(path("resumed")));
  CHECK(contents(path("resumed")) == contents(path("new/program")));
}

TEST_CASE("with two processes, only the first process exports the network", "[distributed]") {
  const TempDir folder;
  const std::string out = folder.path().string(), program = (folder.path() / "net").string();
  auto ranks = sconce::test::start_ranks(
      2, {"sh", "-c",
          sconce::test::train_command("--model mlp --epochs 1 --device cpu --parallel distributed "
                                      "--out " +
                                      out + " --export " + program)});
  sconce::test::wait_for(ranks, sconce::test::Seconds(90));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
  }
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({5, 1, 8, 8});
  CHECK(train::load_predictor(program).forward(x).equal(
      train::load_predictor(folder.path() / "model.safetensors").forward(x)));
}

TEST_CASE("an unwritable --export file is reported before training starts") {
  const TempDir folder;
  const auto file = folder.write("file", ""), made = folder.path() / "new";
  const std::string flags =
      "--model linear --epochs 1 --checkpoint " + (made / "saved").string() + " --export ";
  check_refused(run_train(flags + (file / "below").string()), 1, "--export: " + file.string());
  fs::create_directory(folder.path() / "taken");
  check_refused(run_train(flags + (folder.path() / "taken").string()), 1,
                "--export: " + (folder.path() / "taken").string() + ": expected a regular file");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"file", "taken"});
}

TEST_CASE("--export does not replace a file that is not a program") {
  const TempDir folder;
  const auto table = folder.write("houses.csv", small_houses());
  check_refused(
      run_train("--data " + table.string() + " --target price --export " + table.string()), 2,
      "--export: " + table.string() + " exists and is not a program; specify another file");
  CHECK(contents(table) == small_houses());
}

TEST_CASE("sconce-train predict rejects a program that sconce-train did not write") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  torch::nn::Linear net(4, 2);
  const auto record = [&](const train::Task& task) {
    auto metadata = train::model_metadata("linear", task);
    sconce::program::record(file, net, {{"x", torch::randn({2, 4})}},
                            {.dynamic_shapes = {{"x"}}, .metadata = metadata});
  };
  sconce::program::record(file, net, {{"x", torch::randn({2, 4})}});
  CHECK(error_of([&] { train::load_predictor(file); }) ==
        file.string() +
            ": expected a file written by sconce-train, found no sconce.shape in the metadata");
  check_refused(run_train("predict --weights " + file.string() + " " + file.string()), 1,
                file.string() + ": expected a file written by sconce-train");
  record(picture_task(8));
  CHECK_THAT(
      error_of([&] { train::load_predictor(file); }),
      StartsWith(file.string() +
                 ": expected a program with torch.float32 of shape [-1, 3, 8, 8] as its input"));
  record(table_task());
  CHECK_THAT(error_of([&] { train::load_predictor(file); }),
             ContainsSubstring("of shape [-1, 3] as its input"));
}

TEST_CASE("sconce-train --weights rejects a program") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  train::export_program(file, made_model("linear", picture_task(8)));
  check_refused(run_train("--model linear --weights " + file.string()), 1,
                file.string() + ": expected weights, found a program, which can only predict");
}

TEST_CASE(
    "each of 300 altered program files is either loaded or rejected with an error that includes "
    "the file name") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  const auto task = table_task();
  train::export_program(file, made_model("linear", task));
  const std::string whole = contents(file);
  const auto x = inputs_of(task, 2);
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string altered = whole;
    if (i % 3 == 0) altered.resize(random() % whole.size());
    if (i % 3 != 0) altered[random() % whole.size()] ^= static_cast<char>(1 + random() % 255);
    folder.write("net", altered);
    const std::string error = error_of([&] { train::load_predictor(file).forward(x); });
    if (error == "nothing was thrown") continue;
    ++refused;
    INFO(error);
    CHECK_THAT(error, ContainsSubstring(file.string()));
    CHECK_THAT(error, !ContainsSubstring("INTERNAL ASSERT"));
  }
  CHECK(refused > 250);
}
