// Tests how sconce-train reads and splits tables, trains on them, and makes predictions.
#include "train/table_data.hpp"

#include <torch/torch.h>

#include <fstream>
#include <sstream>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/check_refused.hpp"
#include "support/error_of.hpp"
#include "support/metrics_file.hpp"
#include "train/model_file.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::check_refused;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::run_train;
using sconce::test::RunResult;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

// Returns a table of house prices. Each price depends on the number of rooms, the roof type, and
// the area, plus noise.
std::string houses(int64_t count = 60) {
  std::string text = "rooms,roof,area,price\n";
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rooms = 1 + i * 7 % 5, area = 40 + i * 37 % 61, unknown = i * 29 % 13;
    const int64_t price = 100000 * rooms + 2000 * area + (i % 3 == 0 ? 90000 : 0) + 5000 * unknown;
    text += std::to_string(rooms) + (i % 3 == 0 ? ",slate," : ",tile,") + std::to_string(area) +
            ',' + std::to_string(price) + '\n';
  }
  return text;
}

train::TrainingData open_text(const std::string& text, train::CommandLine line,
                              const train::Task& known = {}) {
  const TempDir folder;
  line.data = folder.write("table.csv", text).string();
  line.device = "cpu";
  return train::open_table(line, {}, known);
}

std::string error_of_text(const std::string& text, const train::CommandLine& line) {
  return error_of([&] { open_text(text, line); });
}

// Returns all examples in first-epoch order.
sconce::data::Dataset all_of(const sconce::AnyBatches& batches) {
  std::vector<torch::Tensor> data, target;
  const auto next = batches.begin();
  for (int64_t i = 0; i < batches.size(); ++i) {
    const auto batch = next().as<sconce::data::Dataset>();
    data.push_back(batch.data);
    target.push_back(batch.target);
  }
  return {torch::cat(data), torch::cat(target)};
}

// Returns the numbers in the given column of a metrics file.
std::vector<double> values_of(const fs::path& csv, const std::string& name) {
  std::vector<double> values;
  for (const auto& text : sconce::test::column_of(csv, name)) values.push_back(std::stod(text));
  return values;
}

}  // namespace

TEST_CASE(
    "numeric table columns are standardized with statistics from the training rows, and categories "
    "are one-hot encoded") {
  const auto data = open_text(houses(), {.target = "price", .batch_size = 7});
  const auto& task = data.task;
  CHECK(task.shape == std::vector<int64_t>{4});
  CHECK(task.is_regression());
  CHECK(task.outputs() == 1);
  CHECK(data.train_size == 48);
  CHECK(data.test_size == 12);
  const auto train = all_of(data.train), test = all_of(data.test);
  CHECK(train.target.sizes() == torch::IntArrayRef{48, 1});
  for (const int64_t feature : {0, 3}) {
    const auto values = train.data.select(1, feature);
    CHECK(values.mean().item<double>() == Catch::Approx(0).margin(1e-6));
    CHECK(values.std().item<double>() == Catch::Approx(1));
    CHECK(test.data.select(1, feature).mean().abs().item<double>() > 1e-3);
  }
  CHECK(task.mean[1] == 0);
  CHECK(task.std[2] == 1);
  CHECK(train.data.slice(1, 1, 3).sum(1).equal(torch::ones(48)));
  CHECK(train.target.std().item<double>() == Catch::Approx(1));
  // Together, the two parts contain every row in the file.
  auto prices = torch::cat({train.target, test.target}).squeeze(1).to(torch::kDouble);
  prices = std::get<0>((prices * task.std.back() + task.mean.back()).round().sort());
  const TempDir folder;
  const auto table =
      sconce::io::read_csv(folder.write("houses.csv", houses()), {.target = "price"});
  const auto all = std::get<0>(table.target.squeeze(1).to(torch::kDouble).sort());
  CHECK(torch::allclose(prices, all, 0, 0.5));
}

TEST_CASE(
    "standardizing a column preserves small differences between large values and maps a constant "
    "column to 0") {
  std::string text = "year,same,y\n";
  for (int i = 0; i < 10; ++i)
    text += std::to_string(16000000 + i) + ",0.1," + std::to_string(i) + '\n';
  const auto data = open_text(text, {.target = "y", .test_fraction = 0.5});
  const auto train = all_of(data.train), test = all_of(data.test);
  CHECK(train.data.select(1, 0).std().item<double>() == Catch::Approx(1));
  CHECK(torch::cat({train.data, test.data}).select(1, 1).equal(torch::zeros(10)));
}

TEST_CASE(
    "rows with a categorical target are split by class, and the target values become the class "
    "names") {
  std::string text = "x,kind\n";
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + (i % 4 == 0 ? ",b\n" : ",a\n");
  const auto data = open_text(text + "40,c\n", {.target = "kind", .test_fraction = 0.5});
  CHECK(data.task.classes == std::vector<std::string>{"a", "b", "c"});
  CHECK(data.task.outputs() == 3);
  CHECK_FALSE(data.task.is_regression());
  CHECK(all_of(data.train).target.bincount().equal(torch::tensor({15, 5, 1})));
  CHECK(all_of(data.test).target.bincount().equal(torch::tensor({15, 5})));
}

TEST_CASE(
    "columns listed in --categories are treated as categorical, and columns listed in --drop are "
    "omitted") {
  const train::CommandLine line{.target = "class", .categories = {"class"}, .drop = {"id"}};
  std::string text = "id,x,class\n";
  for (int i = 0; i < 20; ++i)
    text += "a,1." + std::to_string(i) + ',' + std::to_string(i % 2) + '\n';
  const auto data = open_text(text, line);
  CHECK(data.task.shape == std::vector<int64_t>{1});
  CHECK(data.task.classes == std::vector<std::string>{"0", "1"});
}

TEST_CASE("integer classes above 2^53 stay distinct, and a resumed run has the same classes") {
  std::string text = "x,id\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i) + ",900719925474099" + std::to_string(2 + i % 3) + '\n';
  const train::CommandLine line{.target = "id", .categories = {"id"}};
  const auto data = open_text(text, line);
  CHECK(data.task.classes ==
        std::vector<std::string>{"9007199254740992", "9007199254740993", "9007199254740994"});
  CHECK(all_of(data.train).target.bincount().equal(torch::tensor({11, 10, 10})));
  CHECK(open_text(text, line, data.task).task.classes == data.task.classes);
  CHECK_THROWS_AS(open_text(text + "1,9007199254740995\n", line, data.task), train::UsageError);
}

TEST_CASE("an unusable table is rejected with an error that names the file and the column") {
  const auto refused = [](const std::string& text, const std::string& target) {
    return error_of_text(text, {.target = target});
  };
  const std::string rows = "a,b\n1,x\n1,x\n1,x\n";
  CHECK_THAT(refused(rows, "c"),
             ContainsSubstring("table.csv: target: expected a column name, got 'c'; there are "
                               "'a', 'b'"));
  CHECK_THAT(
      refused(rows, "a"),
      StartsWith("--target: ") &&
          ContainsSubstring(
              "table.csv: expected at least two distinct values in column 'a', found only 1"));
  CHECK_THAT(refused(rows, "b"), ContainsSubstring("in column 'b', found only x"));
  CHECK_THAT(refused("a,b\n", "a"), ContainsSubstring("table.csv: expected rows, found none"));
  CHECK_THAT(refused("a\n1\n2\n", "a"), ContainsSubstring("expected at least one feature column"));
  CHECK_THAT(refused("a,\"b\nc\"\n1,2\n", "a"),
             ContainsSubstring("expected names and categories without line breaks"));
  CHECK_THAT(refused("a,b\n1,2\n2,2\nx,2\n", "a"),
             ContainsSubstring("line 4, column 'a': expected a number, got 'x'"));
  const train::CommandLine skip{.target = "a", .skip_bad = true};
  CHECK_THAT(error_of_text("a,b\n1,NA\n2,\n", skip), ContainsSubstring("line 2, column 'b'"));
  CHECK_THROWS_WITH(open_text("a,b\n1,x\n2,x\n", {.target = "a"}),
                    ContainsSubstring("--test-fraction: no examples are left for testing"));
}

TEST_CASE("bad rows in a table are skipped and counted") {
  const auto data = open_text("a,b\n1,2\n2,3\n3,x\n4,5\n5\n6,7\n",
                              {.target = "a", .test_fraction = 0.5, .skip_bad = true});
  CHECK(data.left_out == 2);
  CHECK(data.train_size + data.test_size == 4);
}

TEST_CASE(
    "a table that needs too much memory is rejected, and the error names the flag that raises the "
    "limit") {
  const std::string error =
      "expected a table that needs at most 2000 bytes of memory (--max-csv-bytes), got ";
  const train::CommandLine line{.target = "price", .limits = {.csv_bytes = 2000}};
  CHECK_THAT(train::with_flags(error_of_text(houses(), line)), ContainsSubstring(error));
  const TempDir folder;
  const std::string file = folder.write("houses.csv", houses()).string();
  const std::string out = (folder.path() / "out").string();
  const RunResult ran = run_train("--device cpu --fast-dev-run --target price --data " + file +
                                  " --max-csv-bytes 200000 --out " + out);
  REQUIRE(ran.exit_code == 0);
  const std::string predict = "predict --weights " + out + "/model.safetensors " + file;
  check_refused(run_train(predict + " --max-csv-bytes 2000"), 1, error);
}

TEST_CASE("a resumed run requires the same target and columns and keeps the saved statistics") {
  const train::CommandLine line{.target = "price", .checkpoint = "saved"};
  const auto known = open_text(houses(), line).task;
  const auto more = open_text(houses(70), line, known).task;
  CHECK(more.mean == known.mean);
  CHECK(more.std == known.std);
  const auto refused = [&](const std::string& text, const std::string& target) {
    try {
      open_text(text, {.target = target, .checkpoint = "saved"}, known);
    } catch (const train::UsageError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK(refused(houses(), "price") == "taken");
  CHECK(refused(houses(), "area") == "--target: the run in saved has price, not area");
  const auto differs = [&](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return refused(text, "price");
  };
  CHECK_THAT(differs(houses(), "rooms", "room"),
             StartsWith("--data: the run in saved has column rooms where ") &&
                 ContainsSubstring("table.csv has column room"));
  CHECK_THAT(differs(houses(), "tile", "thatch"), ContainsSubstring("has category tile where ") &&
                                                      ContainsSubstring("has category thatch"));
  CHECK_THAT(refused("rooms,roof,area\n1,slate,2\n2,tile,3\n", "area"),
             StartsWith("--target: the run in saved has price"));
  train::Task shorter = known;
  shorter.columns.insert(shorter.columns.begin(), {.name = "garden"});
  CHECK_THROWS_WITH(open_text(houses(), line, shorter), ContainsSubstring("has column garden"));
  shorter.columns.assign(known.columns.begin(), known.columns.end() - 1);
  CHECK_THROWS_WITH(
      open_text(houses(), line, shorter),
      ContainsSubstring("has no more columns where ") && ContainsSubstring("has column price"));
}

TEST_CASE("loading a table model from its weights file restores the columns and statistics") {
  const TempDir folder;
  const fs::path file = folder.path() / "model.safetensors";
  const auto task = open_text(houses(), {.target = GENERATE("price", "roof")}).task;
  auto network = train::make_model("mlp", task.shape, task.outputs());
  const auto state = sconce::nn::state_dict(*network);
  const auto metadata = train::model_metadata("mlp", task);
  sconce::io::save_safetensors(file, state, metadata);
  auto model = train::load_model(file);
  CHECK(train::column_lines(model.task.columns) == train::column_lines(task.columns));
  CHECK(model.task.target == task.target);
  CHECK(model.task.classes == task.classes);
  CHECK(model.task.mean == task.mean);
  CHECK(model.task.std == task.std);
  const auto x = torch::ones({2, task.shape[0]});
  CHECK(model.network->forward(x).equal(network->forward(x)));
  const std::string error = error_of([&] { train::load_pretrained(file, "mlp"); });
  CHECK_THAT(error,
             ContainsSubstring(
                 "expected the weights of an image model, got the weights of a table model"));

  const auto refuse = [&](const std::string& key, const std::string& text) {
    auto damaged = metadata;
    damaged["sconce." + key] = text;
    sconce::io::save_safetensors(file, state, damaged);
    INFO(key << " " << text);
    CHECK_THAT(error_of([&] { train::load_model(file); }),
               StartsWith(file.string() + ": expected"));
  };
  for (const char* name : {"lenet", "resnet", "linear", ""}) refuse("model", name);
  for (const char* shape : {"", "5", "4\n1", "1\n4\n4"}) refuse("shape", shape);
  for (const char* columns : {"", "rooms", "category a", "column price", "column roof"}) {
    refuse("columns", columns);
  }
  refuse("target", "garden");
  const std::string one_less = task.is_regression() ? "1\n1\n1\n1" : "1\n1";
  for (const std::string bad : {"", "\n1\n1", "\ninf", "\na"}) {
    refuse("mean", one_less + bad);
    refuse("std", one_less + bad);
  }
  for (const std::string bad : {"0", "-1"}) refuse("std", one_less + "\n" + bad);
}

TEST_CASE(
    "a regression run converges to the least-squares solution, and its predictions use that "
    "solution") {
  const TempDir folder;
  const fs::path out = folder.path() / "out";
  const fs::path file = folder.write("houses.csv", houses());
  const RunResult ran = run_train("--data " + file.string() +
                                  " --target price --model linear --batch-size 48 --epochs 400 "
                                  "--lr 0.1 --device cpu --out " +
                                  out.string());
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("48 training and 12 test rows of 4 features\nloss: mean "
                                        "squared error of price, standardized with mean ") &&
                          ContainsSubstring("model: linear, 5 parameters") &&
                          ContainsSubstring(", test r2 0.9"));
  const auto data = open_text(houses(), {.target = "price"});
  const auto rows = all_of(data.train);
  const auto with_one = [](const torch::Tensor& x) {
    return torch::cat({x, torch::ones({x.size(0), 1})}, 1).to(torch::kDouble);
  };
  const auto y = rows.target.to(torch::kDouble);
  const auto solution = std::get<0>(torch::linalg_lstsq(with_one(rows.data), y));
  const auto residuals = with_one(rows.data).matmul(solution) - y;
  const fs::path metrics = out / "metrics.csv";
  CHECK_THAT(contents(metrics), StartsWith("epoch,loss,train_mae,train_r2,test_mae,test_r2,"));
  const double loss = residuals.square().mean().item<double>();
  CHECK(values_of(metrics, "loss").back() == Catch::Approx(loss).epsilon(1e-4));
  CHECK(values_of(metrics, "train_mae").back() ==
        Catch::Approx(residuals.abs().mean().item<double>() * data.task.std.back()).epsilon(1e-3));
  CHECK(values_of(metrics, "train_r2").back() ==
        Catch::Approx(1 - loss / y.var(/*unbiased=*/false).item<double>()).epsilon(1e-4));

  const std::string predict = "predict --weights " + (out / "model.safetensors").string() + " ";
  const fs::path wanted =
      folder.write("new.csv", "roof,garden,area,rooms\nslate,?,70,3\ntile,,,2\n");
  check_refused(run_train(predict + wanted.string()), 1, "line 3, column 'area'");
  folder.write("new.csv", "roof,garden,area,rooms\nslate,?,70,3\ntile,,80,2\n");
  const RunResult predicted = run_train(predict + wanted.string());
  CHECK(predicted.exit_code == 0);
  const auto expected =
      with_one(train::read_rows(wanted, data.task)).matmul(solution) * data.task.std.back() +
      data.task.mean.back();
  std::istringstream lines(predicted.out);
  for (int64_t i = 0; i < 2; ++i) {
    const std::string name = wanted.string() + ", row " + std::to_string(i + 1) + ": ";
    std::string answer;
    REQUIRE(std::getline(lines, answer));
    REQUIRE_THAT(answer, StartsWith(name));
    CHECK(std::stod(answer.substr(name.size())) ==
          Catch::Approx(expected[i].item<double>()).epsilon(1e-4));
  }
}

TEST_CASE("a regression run produces the same losses and metrics as in Python") {
  const TempDir folder;
  const RunResult ran = run_train("--data " SCONCE_DIGITS_DIR
                                  "/../diabetes/diabetes.csv --target progression --model linear "
                                  "--epochs 5 --device cpu --out " +
                                  folder.path().string());
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  std::istringstream expected(contents(SCONCE_TESTS_DIR "/reference/table_training.txt"));
  const fs::path metrics = folder.path() / "metrics.csv";
  for (size_t epoch = 0; epoch < 5; ++epoch) {
    for (const char* name : {"loss", "train_mae", "test_mae", "test_r2"}) {
      double value = 0;
      REQUIRE(expected >> value);
      INFO(name << " of epoch " << epoch + 1);
      CHECK(values_of(metrics, name).at(epoch) == Catch::Approx(value).epsilon(1e-5));
    }
  }
}

TEST_CASE("sconce-train learns the categories of a table and predicts them by name") {
  const TempDir folder;
  const fs::path out = folder.path() / "out";
  std::string text = "width,length,species\n";
  for (int i = 0; i < 60; ++i) {
    const int kind = i % 3;
    text += std::to_string(kind + 0.01 * (i % 7)) + ',' + std::to_string(5 - kind) + ',' +
            (kind == 0   ? "setosa"
             : kind == 1 ? "iris, wild"
                         : "virginica") +
            '\n';
    if (kind == 1) text.insert(text.rfind("iris, wild"), "\"").insert(text.size() - 1, "\"");
  }
  const fs::path file = folder.write("flowers.csv", text + "x,1,setosa\n1,2\n");
  const std::string data = "--data " + file.string() + " --target species --device cpu --out ";
  const RunResult bad = run_train(data + out.string());
  check_refused(bad, 1,
                "line 62, column 'width': expected a number, got 'x' (line 2 made "
                "this column numeric; to read strings, add the column to .categories); this row "
                "is the first of 2 bad rows");
  CHECK_FALSE(fs::exists(out));
  const RunResult ran = run_train(data + out.string() + " --skip-bad");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("48 training and 12 test rows of 2 features, 3 classes; 2 "
                                        "bad rows left out\nmodel: mlp, ") &&
                          ContainsSubstring("test acc 1.000\n"));
  CHECK_THAT(contents(out / "metrics.csv"), StartsWith("epoch,loss,train_acc,test_acc,examples,"));
  CHECK_THAT(contents(out / "confusion.svg"), ContainsSubstring(">virginica<"));
  CHECK_THAT(contents(out / "training.svg"), ContainsSubstring(">mlp on flowers.csv<"));
  const fs::path wanted = folder.write("new.csv", "width,length\n2,3\n1,4\n");
  const RunResult predicted = run_train(
      "predict --weights " + (out / "model.safetensors").string() + " " + wanted.string());
  CHECK_THAT(predicted.out,
             Catch::Matchers::Matches(wanted.string() + ", row 1: virginica [01]\\.\\d\\d, .*\n" +
                                      wanted.string() + ", row 2: iris, wild [01]\\.\\d\\d, .*\n"));
}

TEST_CASE(
    "resuming a table run produces the same result as an uninterrupted run and requires the same "
    "columns") {
  const TempDir folder;
  const fs::path file = folder.write("houses.csv", houses());
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const auto run = [&](const std::string& flags) {
    return run_train("--batch-size 8 --device cpu --scheduler none " + flags);
  };
  const std::string data = "--data " + file.string() + " --target price ";
  const std::string saved = "--resume --checkpoint " + path("saved") + " ";
  REQUIRE(run(data + "--epochs 3 --out " + path("whole")).exit_code == 0);
  REQUIRE(run(data + "--epochs 2 " + saved).exit_code == 0);
  CHECK(fs::exists(folder.path() / "saved/best.pt"));

  const auto kept = contents(folder.path() / "saved/flags.txt");
  check_refused(run("--data " + file.string() + " --target area --epochs 3 " + saved), 2,
                "--target: the run in " + path("saved") + " has price, not area");
  check_refused(run(data + "--drop roof --epochs 3 " + saved), 2,
                "--data: the run in " + path("saved") + " has column roof where " + file.string() +
                    " has column area");
  check_refused(run("--model mlp --epochs 3 " + saved), 2,
                "--data: the run in " + path("saved") + " has a table, not digits");
  folder.write("houses.csv", houses(70));
  check_refused(run(data + "--epochs 3 " + saved), 2,
                "--data: the run in " + path("saved") +
                    " has 48 training and 12 test examples, not 56 training and 14");
  folder.write("houses.csv", houses());
  CHECK(contents(folder.path() / "saved/flags.txt") == kept);

  const RunResult resumed = run(data + "--epochs 3 --out " + path("again") + " " + saved);
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, ContainsSubstring("resuming from "));
  CHECK(contents(folder.path() / "again/model.safetensors") ==
        contents(folder.path() / "whole/model.safetensors"));
  CHECK(values_of(folder.path() / "again/metrics.csv", "test_mae") ==
        values_of(folder.path() / "whole/metrics.csv", "test_mae"));
}
