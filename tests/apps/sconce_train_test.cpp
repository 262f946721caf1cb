// Tests sconce-train through its user interface: a command line, two output streams, an exit code,
// and files.
#include <sys/stat.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/check_refused.hpp"
#include "support/error_of.hpp"
#include "support/metrics_file.hpp"
#include "support/of_distribution.hpp"
#include "support/processes.hpp"
#include "support/require_gpu.hpp"
#include "support/run_program.hpp"
#include "support/wait_until.hpp"
#include "support/xml.hpp"
#include "train/command_line.hpp"
#include "train/run_flags.hpp"
#include "train/schedule_span.hpp"
#include "train/training_data.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;
using sconce::test::check_refused;
using sconce::test::column_of;
using sconce::test::contents;
using sconce::test::names_in;
using sconce::test::run_program;
using sconce::test::run_train;
using sconce::test::RunResult;
using sconce::test::TempDir;
using sconce::test::train_command;
using sconce::test::wait_until;

namespace {

namespace fs = std::filesystem;

const fs::path digits = SCONCE_DIGITS_DIR;

int lines_of(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// Returns the sum of the cells in a confusion matrix.
int examples_in(const fs::path& chart) {
  const std::string svg = contents(chart);
  const std::regex cell(
      "<text x=[0-9.\"]+ y=[0-9.\"]+ text-anchor=\"middle\"(?: class=\"\\w+\")?>(\\d+)</text>");
  int sum = 0;
  std::sregex_iterator number(svg.begin(), svg.end(), cell);
  // In the SVG file, the ten class names, which are also numbers, follow the cells.
  for (int i = 0; i < 100 && number != std::sregex_iterator(); ++i, ++number) {
    sum += std::stoi((*number)[1]);
  }
  return sum;
}

// Checks that an unfinished run leaves behind no files except per-epoch charts. One of these charts
// may be incomplete.
void check_charts_alone(const fs::path& folder) {
  for (const auto& name : names_in(folder)) {
    INFO(name);
    CHECK((name.starts_with("training.svg") || name.starts_with("confusion.svg")));
  }
}

// Returns the lines of scalars.csv, omitting the times and the two scalars that depend on the
// clock.
std::string learnt_in(const fs::path& scalars) {
  const std::string csv = contents(scalars / "scalars.csv");
  const std::string lines =
      std::regex_replace(csv, std::regex("[^\\n]*,[^\\n]*second[^\\n]*\\n"), "");
  return std::regex_replace(lines, std::regex(",[^,\\n]*\\n"), "\n");
}

// Returns the last test accuracy printed by the program.
double test_acc_of(const RunResult& ran) {
  const auto at = ran.out.rfind("test acc ");
  REQUIRE(at != std::string::npos);
  return std::stod(ran.out.substr(at + std::string("test acc ").size()));
}

// Returns the mean test accuracy on the digits dataset over several seeds.
double mean_test_acc(const std::string& flags, int seeds = 3) {
  double sum = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    sum += test_acc_of(run_train("--epochs 15 --seed " + std::to_string(seed) + " " + flags));
  }
  return sum / seeds;
}

// Checks that two-process training matches single-process training on the combined batches. The
// only difference is a row that both ranks receive, because the number of digits is odd.
void check_as_one(const fs::path& several, const fs::path& one) {
  const auto last = [](const fs::path& csv, const char* name) {
    return std::stod(column_of(csv, name).back());
  };
  CHECK(last(several, "epoch") == last(one, "epoch"));
  CHECK(last(several, "loss") == Catch::Approx(last(one, "loss")).epsilon(5e-3));
  CHECK(last(several, "test_acc") == Catch::Approx(last(one, "test_acc")).margin(0.005));
}

// Returns the losses from a metrics file as strings, exactly as they were written.
std::vector<std::string> losses_of(const fs::path& csv) {
  return column_of(csv, "loss");
}

constexpr auto train_program = SCONCE_BIN_DIR "/sconce-train";

// Parses command-line arguments without the program name.
train::CommandLine parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "sconce-train");
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  return train::parse_command_line(static_cast<int>(argv.size()), argv.data());
}

struct Refusal {
  std::string arguments;
  std::string error;  // how the error starts: the flag and what it accepts or requires
};

// Checks that each command line is rejected with a one-line error. The arguments are parsed in this
// process, because starting the program takes half a second each time.
void check_usage_errors(const std::vector<Refusal>& refusals) {
  for (const auto& [arguments, error] : refusals) {
    INFO("sconce-train " << arguments);
    std::istringstream in(arguments);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    const std::string found = sconce::test::what_of([&] { parsed(words); });
    CHECK(lines_of(found) == 0);
    CHECK_THAT(found, StartsWith(error) && EndsWith(" (--help lists the flags)"));
  }
}

// Adds each of the given flags to the same arguments in turn, and checks the error. In the message,
// the flag precedes `error`.
void check_each_usage_error(const std::string& arguments, const std::vector<std::string>& flags,
                            const std::string& error) {
  for (const auto& flag : flags) {
    check_usage_errors({{arguments + flag, flag.substr(0, flag.find(' ')) + error}});
  }
}

// Runs sconce-train, checks that it succeeds, and returns the run.
RunResult ended(const std::string& arguments) {
  RunResult ran = run_train(arguments);
  INFO(arguments << ": " << ran.err);
  CHECK(ran.exit_code == 0);
  return ran;
}

// Runs sconce-train, checks that it succeeds, and returns the losses.
std::vector<std::string> losses(const std::string& arguments) {
  const TempDir out;
  ended(arguments + " --out " + out.path().string());
  return losses_of(out.path() / "metrics.csv");
}

// Checks that a run fails with exit code 1 and prints a single line that contains the file name and
// the problem.
void check_run_error(const TempDir& folder, const std::string& file, const std::string& what) {
  const RunResult ran = run_train("--data '" + folder.path().string() + "'");
  INFO(ran.err);
  CHECK(ran.exit_code == 1);
  CHECK(lines_of(ran.err) == 1);
  CHECK_THAT(ran.err,
             ContainsSubstring((folder.path() / file).string()) && ContainsSubstring(what));
}

}  // namespace

TEST_CASE(
    "for invalid flags, sconce-train writes no files and exits with code 2 and a one-line error") {
  const auto [arguments, error] = GENERATE(table<std::string, std::string>(
      {{"--epochs 0", "--epochs: must be a whole number from 1 to"},
       {"--model alexnet", "--model: must be linear|mlp|lenet|resnet"},
       {"--resume", "--resume: requires a --checkpoint folder"},
       {"--colour red", "--help lists the flags"}}));
  const TempDir folder;
  const RunResult ran = run_train(arguments + " --out " + (folder.path() / "out").string());
  check_refused(ran, 2, error);
  CHECK(ran.err.starts_with("sconce-train: "));
  CHECK_FALSE(fs::exists(folder.path() / "out"));
}

TEST_CASE(
    "sconce-train rejects invalid numbers, and the error names the flag and its valid values") {
  const std::string whole = "must be a whole number from 1 to 2147483647, not ";
  const std::string positive = "--lr: must be a number above 0, not ";
  check_usage_errors({{"--epochs -1", "--epochs: " + whole + "'-1'"},
                      {"--epochs 0", "--epochs: " + whole + "'0'"},
                      {"--epochs 1.5", "--epochs: " + whole + "'1.5'"},
                      {"--epochs 99999999999999999999", "--epochs: " + whole},
                      {"--epochs 2147483648", "--epochs: " + whole},
                      {"--batch-size 0", "--batch-size: " + whole + "'0'"},
                      {"--accumulate 0", "--accumulate: " + whole + "'0'"},
                      {"--seed -1", "--seed: must be a whole number from 0 to "},
                      {"--lr nan", positive + "'nan'"},
                      {"--lr inf", positive + "'inf'"},
                      {"--lr -1", positive + "'-1'"},
                      {"--lr 1e999", positive + "'1e999'"},
                      {"--lr fast", positive + "'fast'"},
                      {"--clip -1", "--clip: must be a non-negative number, not '-1'"},
                      {"--clip nan", "--clip: must be a non-negative number, not 'nan'"},
                      {"--ema 1", "--ema: must be a non-negative number below 1, not '1'"},
                      {"--ema -0.1", "--ema: must be a non-negative number below 1, not '-0.1'"}});
}

TEST_CASE("sconce-train rejects incompatible multi-device flags") {
  check_usage_errors({{"--parallel many", "--parallel: must be none|data|distributed, not 'many'"},
                      {"--parallel data --device cpu", "--parallel: data uses every GPU"},
                      {"--timeout 3", "--timeout: requires --parallel distributed, not none"}});
  if (sconce::num_gpus() > 0) {
    check_usage_errors(
        {{"--parallel distributed --device cuda:0",
          "--parallel: distributed assigns a GPU to each process and requires --device "
          "auto, not cuda:0"}});
  }
  check_each_usage_error("--parallel distributed ",
                         {"--timeout 0", "--timeout -1", "--timeout nan", "--timeout 2e6"},
                         ": must be a number from 0.001 to 1000000");
}

TEST_CASE(
    "sconce-train rejects invalid image flags and, if --data is not a folder of images, rejects "
    "all image flags") {
  const std::vector<std::string> of_pictures = {"--image-size 8", "--gray", "--augment",
                                                "--workers 0"};
  for (const std::string data : {"digits", "fashion-mnist", SCONCE_DIGITS_DIR}) {
    const std::string not_data = " for --data, not " + data;
    check_each_usage_error("--data " + data + " ", of_pictures,
                           ": requires a folder of images" + not_data);
    check_each_usage_error("--data " + data + " ", {"--test-fraction 0.5", "--skip-bad"},
                           ": requires a folder of images or a CSV file" + not_data);
  }
  check_each_usage_error("", of_pictures, ": requires a folder of images for --data, not digits");
  check_each_usage_error("", {"--test-fraction 0.5", "--skip-bad"},
                         ": requires a folder of images or a CSV file for --data, not digits");
  const std::string size = "--image-size: must be a whole number from 1 to 1024";
  const std::string fraction = "--test-fraction: must be a number above 0 and below 1";
  check_usage_errors(
      {{"--data / --image-size 0", size},
       {"--data / --image-size 1025", size},
       {"--data / --image-size 1", "--image-size: lenet requires a size of at least 4, not 1"},
       {"--data / --image-size 3", "--image-size: lenet requires a size of at least 4, not 3"},
       {"--data / --test-fraction 0", fraction},
       {"--data / --test-fraction 1", fraction},
       {"--data / --workers -1", "--workers: must be a whole number from 0 to 1024"},
       {"--data / --max-pixels 0", "--max-pixels: must be a whole number from 1"},
       {"--data / --max-csv-bytes 1", "--max-csv-bytes: requires a CSV file for --data"}});
}

TEST_CASE(
    "sconce-train rejects a table without a target, and rejects flags that do not apply to "
    "tables") {
  const TempDir folder;
  const std::string file = folder.write("houses.csv", "rooms,price\n").string();
  const std::string data = "--data " + file + " ";
  const std::string table = data + "--target price ";
  check_usage_errors(
      {{data, "--data: " + file + " is a table and requires --target"},
       {table + "--weights a.pt", "--weights: requires images for --data, not " + file},
       {"predict --weights a --target b c", "--target: "}});
  for (const std::string begin : {"", "--data / "}) {
    check_each_usage_error(
        begin, {"--target a", "--categories a", "--drop a"},
        ": requires a CSV file for --data, not " + std::string(begin.empty() ? "digits" : "/"));
  }
  check_each_usage_error(table,
                         {"--image-size 8", "--gray", "--augment", "--workers 1", "--max-pixels 1"},
                         ": requires a folder of images for --data, not " + file);
  for (const std::string model : {"lenet", "resnet", "resnet18", "vit_b_16"}) {
    check_usage_errors(
        {{table + "--model " + model, "--model: " + model + " requires images for --data, not " +
                                          file + "; a table requires linear or mlp"}});
  }
}

TEST_CASE("sconce-train accepts table flags and trains an mlp on tables by default") {
  const TempDir folder;
  const std::string file = folder.write("houses.csv", "").string();
  const auto line = parsed({"--data", file, "--target", "a b", "--drop", "c", "--drop", "d",
                            "--categories", "e", "--skip-bad"});
  CHECK(line.model == "mlp");
  CHECK(line.target == "a b");
  CHECK(line.drop == std::vector<std::string>{"c", "d"});
  CHECK(line.categories == std::vector<std::string>{"e"});
  CHECK(line.skip_bad);
}

TEST_CASE("sconce-train rejects data and sizes that torchvision networks do not accept") {
  check_usage_errors(
      {{"--model resnet18", "--model: resnet18 requires a folder of images for --data"},
       {"--data / --model resnet50 --gray", "--gray: resnet50 requires color images"},
       {"--data / --model vit_b_16 --image-size 40",
        "--image-size: vit_b_16 requires a size that is a multiple of 16, not 40"},
       {"--freeze", "--freeze: requires --weights"}});
  CHECK(parsed({"--data", "/"}).image_size == 32);
  CHECK(parsed({"--data", "/", "--model", "resnet34"}).image_size == 224);
  CHECK(parsed({"--data", "/", "--model", "vit_b_16", "--image-size", "64"}).image_size == 64);
}

TEST_CASE("sconce-train predict accepts weights and images but no training flags") {
  check_usage_errors(
      {{"predict", "--weights is required"},
       {"predict --weights a", "INPUT is required"},
       {"predict a.png", "--weights is required"},
       {"predict --weights a b.png --export c", "--export: unknown flag"},
       {"--epochs 3 predict --weights a b.png", "--epochs: cannot be used with predict"},
       {"predict --weights a b.png --epochs 3", "--epochs: unknown flag"}});
  const auto predict =
      parsed({"predict", "--weights", "a", "--max-pixels", "7", "--max-csv-bytes", "8", "b"})
          .predict;
  CHECK(predict->limits.image.max_pixels == 7);
  CHECK(predict->limits.csv_bytes == 8);
}

TEST_CASE("sconce-train rejects checkpoint and scalar flags without the folder that they require") {
  check_usage_errors(
      {{"--resume", "--resume: requires a --checkpoint folder"},
       {"--save-every 5", "--save-every: requires a --checkpoint folder"},
       {"--checkpoint x --save-every -1", "--save-every: must be a whole number from 0"},
       {"--checkpoint x --fast-dev-run", "--checkpoint: cannot be used with --fast-dev-run"},
       {"--scalars x --fast-dev-run", "--scalars: cannot be used with --fast-dev-run"},
       {"--scalars-every 5", "--scalars-every: requires a --scalars folder"},
       {"--scalars x --scalars-every -1", "--scalars-every: must be a whole number from 0"}});
}

TEST_CASE("sconce-train rejects an --export path that --out also writes to") {
  for (const std::string name :
       {"metrics.csv", "model.safetensors", "training.svg", "confusion.svg", "trace.json"}) {
    check_usage_errors(
        {{"--out a/b --export a/./b/" + name,
          "--export: a/./b/" + name + " is a file that --out writes; specify another file"}});
  }
  CHECK(parsed({"--out", "a", "--export", "a/program"}).export_file == "a/program");
}

TEST_CASE("sconce-train rejects an empty path, such as one from an unset shell variable") {
  const auto [words, error] = GENERATE(table<std::vector<std::string>, std::string>(
      {{{"--checkpoint", "", "--resume"}, "--checkpoint: must be a folder"},
       {{"--out", ""}, "--out: must be a folder"},
       {{"--scalars", ""}, "--scalars: must be a folder"},
       {{"--export", ""}, "--export: must be a file"},
       {{"--weights", ""}, "--weights: must be a file"},
       {{"predict", "--weights", "", "a.png"}, "--weights: must be a file"}}));
  CHECK_THROWS_WITH(parsed(words), StartsWith(error + ", not ''"));
}

TEST_CASE(
    "if a command line contains several errors, sconce-train reports the first one in a fixed "
    "order") {
  check_usage_errors(
      {{"--epochs 0 --max-pixels 0", "--max-pixels: must be"},  // values, as --help lists them
       {"--resume --epochs 0", "--epochs: must be"},
       {"--target a --gray", "--gray: requires"},
       {"--skip-bad --workers 0", "--workers: requires"},
       {"--max-csv-bytes 3 --skip-bad", "--skip-bad: requires"},
       {"--freeze --model resnet18", "--freeze: requires"},
       {"--freeze --timeout 5", "--freeze: requires"},
       {"--scalars-every 5 --out x --export x/metrics.csv", "--export: x/metrics.csv is"},
       {"--data / --model vit_b_16 --image-size 40 --gray", "--gray: vit_b_16 requires"},
       {"--graph --accumulate 2 --timeout 3", "--timeout: requires"},
       {"--resume --save-every 5", "--save-every: requires"},
       {"--profile 3 --overwrite --scalars-every 5", "--overwrite: requires"},
       {"--scalars-every 5 --fast-dev-run --checkpoint x", "--scalars-every: requires"}});
}

TEST_CASE("sconce-train parses numbers with leading zeros as decimal") {
  CHECK(losses("--model linear --epochs 010 --batch-size 0900 --device cpu").size() == 10);
}

TEST_CASE("sconce-train rejects invalid names and lists the valid ones") {
  check_each_usage_error("", {"--device cuda:99", "--device cuda:-1", "--device gpu"},
                         ": must be auto, cpu, or cuda:N");
  check_usage_errors(
      {{"--model alexnet", "--model: must be linear|mlp|lenet|resnet"},
       {"--optimizer lion",
        "--optimizer: must be sgd|adam|adamw|adagrad|rmsprop|nadam|adadelta|adamax"},
       {"--scheduler plateau", "--scheduler: must be none|step|cosine|onecycle"},
       {"--precision fp8", "--precision: must be fp32|tf32|bf16|fp16"},
       {"--precision tf32 --device cpu", "--precision: tf32 requires a GPU"},
       {"--data nowhere", "--data: must be digits, fashion-mnist, a folder of IDX files"},
       {"--colour red", "--colour: "},
       {"--epochs", "--epochs: "}});
}

TEST_CASE("sconce-train rejects flags that are incompatible with --graph or --compile") {
  for (const std::string flag : {"--graph", "--compile"}) {
    check_usage_errors(
        {{flag + " --parallel data",
          flag + ": requires --parallel none, or distributed on CPUs, not data"},
         {flag + " --accumulate 2", flag + ": requires --accumulate 1, not 2"},
         {flag + " --scheduler onecycle",
          flag + ": requires a --scheduler that changes only the learning rate, not onecycle"}});
  }
  CHECK(parsed({"--graph", "--device", "cpu", "--parallel", "distributed"}).graph);
  CHECK(parsed({"--compile", "--device", "cpu"}).compile);
}

TEST_CASE("sconce-train rejects --compile on a GPU, and the error names the device", "[gpu]") {
  sconce::test::require_gpu();
  const std::string error =
      "--compile: requires the CPU, but the device is cuda:0; add --device cpu, or use --graph";
  check_usage_errors({{"--compile", error}, {"--compile --device cuda:0", error}});
  check_refused(run_train("--compile"), 2, error);
  CHECK(parsed({"--compile", "--device", "cpu"}).compile);
}

TEST_CASE("sconce-train --help lists every flag with its default") {
  const RunResult ran = ended("--help");
  CHECK(ran.err.empty());
  for (const char* flag :
       {"--data",       "--model",         "--epochs",    "--batch-size",    "--optimizer",
        "--lr",         "--scheduler",     "--precision", "--clip",          "--accumulate",
        "--ema",        "--seed",          "--device",    "--fast-dev-run",  "--out",
        "--help",       "--image-size",    "--gray",      "--test-fraction", "--augment",
        "--skip-bad",   "--workers",       "--scalars",   "--summary",       "--live-loss",
        "--profile",    "--memory",        "--graph",     "--overwrite",     "--version",
        "--weights",    "--freeze",        "--target",    "--categories",    "--drop",
        "--max-pixels", "--max-csv-bytes", "--export",    "predict",         "--compile"}) {
    CHECK_THAT(ran.out, ContainsSubstring(flag));
  }
  CHECK_THAT(ran.out,
             ContainsSubstring("(default: cosine)") &&
                 (ContainsSubstring("--data digits|fashion-mnist|DIR|FILE\n") ||
                  ContainsSubstring("--data digits|fashion-mnist|DIR|FILE \n")));  // CLI11 2.6
  CHECK_THAT(ran.out, !ContainsSubstring("="));
  CHECK_THAT(ended("predict --help").out, ContainsSubstring("--weights FILE REQUIRED"));
}

TEST_CASE("sconce-train suggests the closest flag for a misspelled one") {
  const std::string none = ": unknown flag", mean = none + "; did you mean ";
  check_usage_errors(
      {{"--epcohs 3", "--epcohs" + mean + "--epochs?"},
       {"--epcohs=3", "--epcohs" + mean + "--epochs?"},
       {"--epohs 3 --model lenet", "--epohs" + mean + "--epochs?"},
       {"--l 0.1", "--l" + mean + "--lr?"},
       {"--batchsize 8 --epcohs 3", "--batchsize" + mean + "--batch-size?"},
       {"--epcohs 3 --model alexnet", "--epcohs" + mean + "--epochs?"},
       {"predict --wieghts model.safetensors a.png", "--wieghts" + mean + "--weights?"},
       {"--colour red", "--colour" + none + " (--help"},
       {"-e 3", "-e" + none + " (--help"},
       {"red", "'red': unknown argument (--help"},
       {"--model alexnet -- red", "'red': unknown argument (--help"}});
}

TEST_CASE("sconce-train reaches 0.95 accuracy on the digits and prints each epoch once",
          "[alone]") {
  const RunResult ran = ended("--epochs 15 --device cpu");
  CHECK_THAT(ran.out, ContainsSubstring("hardware: ") && ContainsSubstring("training on cpu"));
  CHECK(std::regex_search(
      ran.out,
      std::regex("\nepoch 14/15: [^\n]*\nepoch 15/15: loss \\d\\.\\d{3}, train acc "
                 "\\d\\.\\d{3}, test acc \\d\\.\\d{3}\n\\d+\\.\\d examples/sec on cpu\n$")));
  CHECK(test_acc_of(ran) >= 0.95);
  // With a constant learning rate, this seed reaches an accuracy of 0.925.
  CHECK(test_acc_of(run_train("--epochs 15 --device cpu --seed 83")) >= 0.95);
}

TEST_CASE("on the CPU, sconce-train --graph does not change the test accuracy", "[alone]") {
  const std::string flags = "--model mlp --epochs 2 --device cpu --clip 1 ";
  CHECK(test_acc_of(ended(flags + "--graph")) == test_acc_of(ended(flags)));
}

TEST_CASE("on a GPU, sconce-train --graph learns the digits in fp32, fp16, and bf16", "[gpu]") {
  sconce::test::require_gpu();
  for (const char* flags : {"--precision fp32", "--precision fp16 --clip 1 --ema 0.9",
                            "--precision bf16 --optimizer adamw --lr 0.003"}) {
    CHECK(test_acc_of(ended(std::string("--epochs 15 --graph ") + flags)) >= 0.95);
  }
}

TEST_CASE("16-bit training on the digits is as accurate as fp32 training", "[alone]") {
  const auto check = [](const std::string& model, const std::string& precision) {
    const double fp32 = mean_test_acc("--device cpu --precision fp32 --model " + model);
    CHECK(fp32 > 0.96);
    CHECK(mean_test_acc("--device cpu --precision " + precision + " --model " + model) >=
          fp32 - 0.01);
  };
  check("lenet", "bf16");
  check("mlp", "fp16");  // its convolutions are slow on CPUs
}

TEST_CASE("on a GPU, training on the digits is as accurate in every precision as in fp32",
          "[gpu]") {
  sconce::test::require_gpu();
  // Simulated GPUs run the CPU kernels, which another test case already covers with three seeds.
  const int seeds = sconce::test::on_simulated_gpus() ? 1 : 3;
  const double fp32 = mean_test_acc("--precision fp32 --device cuda:0", seeds);
  for (const char* precision : {"tf32", "bf16", "fp16"}) {
    INFO(precision);
    const double acc =
        mean_test_acc("--device cuda:0 --precision " + std::string(precision), seeds);
    CHECK(acc >= fp32 - 0.01);
  }
}

TEST_CASE("sconce-train learns the digits with sgd, adam, adamw, and every scheduler", "[alone]") {
  const std::string how =
      GENERATE("--optimizer adam --lr 0.003 --scheduler step",
               "--optimizer adamw --scheduler onecycle --lr 0.005",
               "--scheduler cosine --batch-size 16 --accumulate 2 --clip 1 --ema 0.9");
  CHECK(test_acc_of(ended(how + " --model mlp --epochs 15 --device cpu")) > 0.95);
}

TEST_CASE("sconce-train --summary prints the model and does not change training", "[alone]") {
  const TempDir folder;
  const auto run = [&](const std::string& name, const std::string& flags) {
    return ended("--model lenet --epochs 2 --device cpu " + flags + " --out " +
                 (folder.path() / name).string())
        .out;
  };
  const std::string plain = run("plain", "");
  const std::string with = run("with", "--summary --live-loss");
  CHECK_THAT(plain, !ContainsSubstring("Output shape"));
  CHECK_THAT(with, ContainsSubstring("Output shape") && ContainsSubstring("Conv2d (0)"));
  CHECK_THAT(with, !ContainsSubstring("\x1b"));
  const auto losses = losses_of(folder.path() / "plain" / "metrics.csv");
  CHECK(losses.size() == 2);
  CHECK(losses == losses_of(folder.path() / "with" / "metrics.csv"));
  // A batch cannot contain more examples than the dataset.
  CHECK_THAT(ended("--model linear --epochs 1 --device cpu --summary --batch-size 1000000000").out,
             ContainsSubstring("[1437, 10]"));
}

TEST_CASE("sconce-train draws a progress bar on a terminal unless the terminal is dumb",
          "[alone]") {
  // The script command from util-linux runs the program on a pseudo-terminal.
  if (std::system("command -v script >/dev/null 2>&1") != 0) SKIP("needs script of util-linux");
  const auto shown = [](const std::string& term) {
    const RunResult ran =
        run_program("TERM=" + term +
                    " script -qec '" SCONCE_BIN_DIR
                    "/sconce-train --model linear --epochs 1 --device cpu' /dev/null");
    CHECK(ran.exit_code == 0);
    return ran.out;
  };
  CHECK_THAT(shown("xterm"), ContainsSubstring("\repoch 1/1 ") && ContainsSubstring("\x1b[K"));
  CHECK_THAT(shown("dumb"), ContainsSubstring("epoch 1/1: ") && !ContainsSubstring("\x1b[K"));
}

TEST_CASE("every training flag affects the result", "[alone]") {
  const TempDir folder;
  const auto last_line = [&](const std::string& flags) {
    const std::string command = "--model linear --epochs 3 --device cpu --overwrite --out ";
    REQUIRE(run_train(command + folder.path().string() + " " + flags).exit_code == 0);
    std::string text = contents(folder.path() / "metrics.csv");
    text.resize(text.rfind(','));  // the elapsed seconds for the last epoch
    return text.substr(text.rfind('\n'));
  };
  const std::string plain = last_line("");
  CHECK(plain == last_line("--scheduler cosine --precision fp32 --clip 0 --accumulate 1 --ema 0"));
  CHECK(plain == last_line("--optimizer sgd --lr 0.05 --clip 1e9"));
  for (const char* flag : {"--optimizer adam", "--lr 0.01", "--scheduler none", "--precision bf16",
                           "--clip 0.1", "--accumulate 2", "--ema 0.99"}) {
    INFO(flag);
    CHECK(plain != last_line(flag));
  }
}

TEST_CASE(
    "the same seed produces the same losses bit for bit, and a different seed produces different "
    "losses",
    "[alone]") {
  const char* threads = GENERATE("1", "2");
  ::setenv("OMP_NUM_THREADS", threads, 1);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);  // two spinning threads wait long for a busy core
  const std::string flags = "--model mlp --epochs 3 --device cpu --seed ";
  const auto first = losses(flags + "1");
  CHECK(first.size() == 3);
  CHECK(first == losses(flags + "1"));
  CHECK(first != losses(flags + "2"));
}

TEST_CASE(
    "sconce-train trains linear, mlp, lenet, and resnet, and --fast-dev-run runs one batch of one "
    "epoch",
    "[alone]") {
  const std::string model = GENERATE("linear", "mlp", "lenet", "resnet");
  const TempDir folder;
  ended("--fast-dev-run --epochs 7 --batch-size 8 --model " + model + " --out " +
        folder.path().string());
  CHECK_THAT(contents(folder.path() / "metrics.csv"),
             Matches("epoch,loss,train_acc,test_acc,examples,seconds\n"
                     "1,[0-9.e-]+,[0-9.e-]+,[0-9.e-]+,8,[0-9.e-]+\n"));
}

TEST_CASE("sconce-train reads gzipped files in a folder the same way as uncompressed files",
          "[alone]") {
  const TempDir folder;
  for (const auto& entry : fs::directory_iterator(digits)) {
    if (!entry.path().string().ends_with("-ubyte")) continue;
    const std::string bytes = contents(entry);
    const gzFile file =
        gzopen((folder.path() / (entry.path().filename().string() + ".gz")).c_str(), "wb");
    REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) ==
            static_cast<int>(bytes.size()));
    gzclose(file);
  }
  const std::string flags = "--model linear --epochs 2 --device cpu --data ";
  CHECK(losses(flags + folder.path().string()) == losses(flags + "digits"));
}

TEST_CASE("sconce-train reads Fashion-MNIST, or explains how to get it if it is not installed",
          "[alone]") {
  const RunResult ran = run_train("--data fashion-mnist --fast-dev-run --model linear");
  if (fs::is_directory("/usr/share/datasets/fashion-mnist")) {
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, ContainsSubstring("60000 training and 10000 test images of 28x28"));
  } else {
    CHECK(ran.exit_code == 1);
    CHECK(lines_of(ran.err) == 1);
    CHECK_THAT(ran.err, ContainsSubstring("apt install dataset-fashion-mnist") &&
                            ContainsSubstring("--data DIR"));
  }
}

TEST_CASE("a damaged dataset ends the run with a one-line error that names the file", "[alone]") {
  const TempDir folder;
  fs::copy(digits, folder.path());
  const fs::path images = folder.path() / "t10k-images-idx3-ubyte";
  fs::remove(folder.path() / "train-images-idx3-ubyte");
  check_run_error(folder, "train-", "cannot open it: No such file");
  fs::copy(digits / "train-images-idx3-ubyte", folder.path());
  fs::resize_file(images, fs::file_size(images) - 1);
  check_run_error(folder, "t10k-images-idx3-ubyte", "expected");
  fs::copy(digits / "t10k-labels-idx1-ubyte", images, fs::copy_options::overwrite_existing);
  check_run_error(folder, "t10k-", "expected");
}

TEST_CASE("a failed run leaves the metrics of an earlier run unchanged and adds no files",
          "[alone]") {
  const TempDir data;
  const TempDir out;
  out.write("metrics.csv", "kept\n");
  const RunResult ran =
      run_train("--data " + data.path().string() + " --overwrite --out " + out.path().string());
  CHECK(ran.exit_code == 1);
  CHECK(contents(out.path() / "metrics.csv") == "kept\n");
  CHECK(std::distance(fs::directory_iterator(out.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("an --out folder that cannot be created is reported before training starts", "[alone]") {
  const TempDir folder;
  const fs::path file = folder.write("file", "");
  const RunResult ran = run_train("--out " + (file / "below").string());
  check_refused(ran, 1, (file / "below").string());
  CHECK_THAT(ran.err, ContainsSubstring("--out"));
}

TEST_CASE("unwritable results are reported before training starts") {
  for (const char* name : {"metrics.csv", "model.safetensors"}) {
    const TempDir folder;
    fs::create_directory(folder.path() / name);
    check_refused(run_train("--fast-dev-run --model linear --out " + folder.path().string()), 1,
                  "--out: " + (folder.path() / name).string());
    CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("a run that fails before writing any file removes the folders that it created") {
  const TempDir folder;
  const fs::path file = folder.write("file", ""), made = folder.path() / "new";
  const std::string flags = "--model linear --device cpu --epochs 1 --scalars " +
                            (made / "scalars").string() + " --checkpoint " +
                            (made / "a/saved").string();
  check_refused(run_train(flags + " --out " + (file / "below").string()), 1, "--out: ");
  CHECK_FALSE(fs::exists(made));

  ended(flags);
  const fs::path saved = made / "a/saved/checkpoint-000001-00000000.pt";
  const auto state = sconce::io::load_torch(saved).toGenericDict();
  state.insert_or_assign("optimizer", 7);
  sconce::io::save_torch(saved, state);
  for (const std::string out : {"out", "deep/in/out/"}) {
    fs::create_directory(folder.path() / "deep");
    const RunResult ran = run_train(flags + " --resume --out " + (folder.path() / out).string());
    CHECK(ran.exit_code == 1);
    CHECK_THAT(ran.err, ContainsSubstring(saved.string() + ": 'optimizer'"));
    CHECK(names_in(folder.path()) == std::vector<std::string>{"deep", "file", "new"});
    CHECK(fs::is_empty(folder.path() / "deep"));
  }
}

TEST_CASE("sconce-train --profile and --memory do not change training", "[alone]") {
  const TempDir folder;
  const auto plain = folder.path() / "plain";
  const auto traced = folder.path() / "traced";
  const std::string flags = "--model linear --epochs 2 --device cpu --out ";
  ended(flags + plain.string());
  const RunResult ran = ended(flags + traced.string() + " --profile 3 --memory");
  CHECK(ran.err.empty());
  CHECK_THAT(ran.out, ContainsSubstring("\npeak memory on cpu: "));
  CHECK(losses_of(traced / "metrics.csv") == losses_of(plain / "metrics.csv"));
  const auto trace = nlohmann::json::parse(contents(traced / "trace.json"));
  const auto& events = trace.at("traceEvents");
  CHECK(std::count_if(events.begin(), events.end(), [](const auto& event) {
          return event.value("cat", "") == "user_annotation" && event.at("name") == "step";
        }) == 3);

  check_usage_errors({{"--profile 3", "--profile: requires an --out folder"}});
}

TEST_CASE("an unwritable checkpoint folder is reported before training starts") {
  const RunResult ran = run_train("--model linear --epochs 1 --checkpoint /proc");
  INFO(ran.err);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.out, !ContainsSubstring("epoch 1/1"));
  CHECK(lines_of(ran.err) == 1);
  CHECK_THAT(ran.err, ContainsSubstring("--checkpoint: /proc/"));
}

TEST_CASE("metrics are written even if the weights do not fit on the disk") {
  const TempDir folder;
  const std::string command = "--model mlp --epochs 2 --device cpu --out ";
  const RunResult ran = sconce::test::run_program(
      "(trap '' XFSZ; ulimit -f 16; exec " + train_command(command + folder.path().string()) + ")");
  INFO(ran.err);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("model.safetensors: cannot write it: File too large"));
  CHECK(losses_of(folder.path() / "metrics.csv").size() == 2);
  CHECK_FALSE(fs::exists(folder.path() / "model.safetensors"));
}

TEST_CASE("a run with --out draws its training curve and its confusion matrix") {
  const TempDir folder;
  ended("--model linear --epochs 2 --device cpu --out " + folder.path().string());
  CHECK(names_in(folder.path()) == std::vector<std::string>{"confusion.svg", "metrics.csv",
                                                            "model.safetensors", "training.svg"});
  const std::string training = contents(folder.path() / "training.svg");
  CHECK(sconce::test::xml_problem(training) == "");
  for (const char* part : {">linear on digits<", ">loss<", ">acc<", ">learning rate<", ">2<"}) {
    CHECK_THAT(training, ContainsSubstring(part));
  }
  const std::string confusion = contents(folder.path() / "confusion.svg");
  CHECK(sconce::test::xml_problem(confusion) == "");
  CHECK_THAT(confusion, ContainsSubstring(">Confusion matrix, epoch 2<"));
  CHECK(examples_in(folder.path() / "confusion.svg") == 360);
}

TEST_CASE("a chart's title contains the name of the data folder rather than its path") {
  const TempDir folder;
  const fs::path data = folder.path() / "a" / "my-digits";
  fs::create_directories(data);
  fs::copy(digits, data);
  ended("--model linear --epochs 1 --device cpu --data " + data.string() + "/ --out " +
        folder.path().string());
  CHECK_THAT(contents(folder.path() / "training.svg"),
             ContainsSubstring(">linear on my-digits<") && !ContainsSubstring("a/my-digits"));
}

TEST_CASE("without --overwrite, a run cannot write to another run's folder") {
  const TempDir folder;
  const std::string out = (folder.path() / "out").string();
  const auto run = [&](const std::string& flags) {
    return run_train("--model linear --epochs 1 --device cpu --out " + out + " " + flags);
  };
  REQUIRE(run("").exit_code == 0);
  const auto names = names_in(out);
  const auto files = [&] {
    std::string all;
    for (const auto& name : names_in(out)) all += contents(fs::path(out) / name);
    return all;
  };
  const std::string kept = files();
  const std::string saved = (folder.path() / "saved").string();
  for (const std::string& flags :
       {std::string("--seed 1"), std::string("--fast-dev-run"), "--resume --checkpoint " + saved}) {
    INFO(flags);
    check_refused(run(flags), 2,
                  "sconce-train: --out: " + out +
                      " contains the metrics.csv from another run; specify " +
                      "another folder, or replace the files with --overwrite");
    CHECK(files() == kept);
    CHECK_FALSE(fs::exists(saved));
  }
  const RunResult replaced = run("--seed 1 --overwrite");
  INFO(replaced.err);
  CHECK(replaced.exit_code == 0);
  CHECK(names_in(out) == names);
  CHECK(losses_of(fs::path(out) / "metrics.csv").size() == 1);
  CHECK(files() != kept);
  fs::remove(fs::path(out) / "metrics.csv");
  CHECK_THAT(run("").err, ContainsSubstring("contains the model.safetensors from another run"));
  check_usage_errors({{"--overwrite", "--overwrite: requires an --out folder"}});
}

TEST_CASE("a resumed run replaces its own results but not another run's") {
  const TempDir folder;
  const auto run = [&](const std::string& name, const std::string& flags) {
    return run_train("--model linear --scheduler none --device cpu --out " +
                     (folder.path() / "out").string() + " --checkpoint " +
                     (folder.path() / name).string() + " " + flags);
  };
  REQUIRE(run("one", "--epochs 2").exit_code == 0);
  CHECK(run("one", "--epochs 2 --resume").exit_code == 0);  // repeats only the end of the run
  CHECK(run("one", "--epochs 3 --resume").exit_code == 0);
  CHECK(losses_of(folder.path() / "out" / "metrics.csv").size() == 3);
  REQUIRE(run("two", "--epochs 1 --seed 1 --overwrite").exit_code == 0);
  const RunResult other = run("one", "--epochs 4 --resume");
  INFO(other.err);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("contains the metrics.csv from another run"));
  CHECK(losses_of(folder.path() / "out" / "metrics.csv").size() == 1);
  CHECK(run("one", "--epochs 4 --resume --overwrite").exit_code == 0);
}

TEST_CASE("charts that cannot be written do not affect the rest of the run") {
  const TempDir folder;
  const std::string arguments = "--model linear --epochs 3 --device cpu --out ";
  const fs::path full = folder.path() / "full", taken = folder.path() / "taken";
  for (const char* name : {"training.svg", "confusion.svg"}) {
    fs::create_directories(taken / name);
  }
  // The disk has enough space for the metrics and the weights but not for the charts.
  const RunResult runs[] = {
      sconce::test::run_program("(trap '' XFSZ; ulimit -f 7; exec " +
                                train_command(arguments + full.string()) + ")"),
      run_train(arguments + taken.string())};
  for (const auto& ran : runs) {
    INFO(ran.err);
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, ContainsSubstring("epoch 3/3"));
    CHECK(lines_of(ran.err) == 2);
    CHECK_THAT(ran.err, ContainsSubstring("sconce::TrainingCurve: training continues") &&
                            ContainsSubstring("sconce::ConfusionMatrixLogger: training continues"));
  }
  CHECK(names_in(full) == std::vector<std::string>{"metrics.csv", "model.safetensors"});
  CHECK(losses_of(full / "metrics.csv") == losses_of(taken / "metrics.csv"));
}

TEST_CASE("a run resumes with or without --out, and its charts include the earlier epochs",
          "[alone]") {
  const TempDir folder;
  const std::string out = " --out " + (folder.path() / "out").string();
  const auto run = [&](const std::string& flags) {
    return run_train("--model linear --scheduler none --device cpu --resume --checkpoint " +
                     (folder.path() / "run").string() + flags);
  };
  REQUIRE(run(" --epochs 1").exit_code == 0);
  REQUIRE(run(" --epochs 2" + out).exit_code == 0);
  const RunResult last = run(" --epochs 3");
  INFO(last.err);
  CHECK(last.exit_code == 0);
  // In the SVG file, the legend marker precedes the line for the training loss, which has one
  // marker per epoch.
  const std::string training = contents(folder.path() / "out" / "training.svg");
  const auto legend = training.find("<path class=\"m0\"");
  const auto loss = training.find("<path class=\"m0\"", legend + 1);
  REQUIRE(loss != training.npos);
  const std::string markers = training.substr(loss, training.find("/>", loss) - loss);
  CHECK(std::count(markers.begin(), markers.end(), 'M') == 2);
}

TEST_CASE("sconce-train --scalars writes a run's scalars, and a resumed run appends to them") {
  const TempDir folder;
  const std::string checkpoint = " --checkpoint " + (folder.path() / "checkpoint").string();
  const auto run = [&](const std::string& log, const std::string& flags) {
    return run_train("--model linear --scheduler none --device cpu --scalars-every 10 --scalars " +
                     (folder.path() / log).string() + flags);
  };
  const auto learnt = [&](const std::string& name) { return learnt_in(folder.path() / name); };
  REQUIRE(run("whole", " --epochs 3").exit_code == 0);
  REQUIRE(run("parts", " --epochs 3 --resume" + checkpoint).exit_code == 0);
  const std::string whole = learnt("whole");
  CHECK_THAT(whole, StartsWith("step,epoch,tag,value\n10,1,loss_step,"));
  CHECK_THAT(whole, ContainsSubstring("test_acc"));
  CHECK(learnt("parts") == whole);
  REQUIRE(run("parts", " --epochs 4 --resume" + checkpoint).exit_code == 0);
  CHECK_THAT(learnt("parts"), StartsWith(whole) && ContainsSubstring(",4,test_acc,"));

  const RunResult again = run("whole", " --epochs 3");
  check_refused(again, 2, "--scalars: " + (folder.path() / "whole").string() + " contains the ");
  CHECK_THAT(again.err, ContainsSubstring("continue that run with --resume"));
  CHECK(learnt("whole") == whole);
}

TEST_CASE(
    "if there is no run to resume, sconce-train --resume leaves another run's scalars unchanged") {
  const TempDir folder;
  const std::string log = (folder.path() / "log").string();
  const auto run = [&](const fs::path& checkpoint) {
    return run_train("--model linear --epochs 1 --device cpu --resume --scalars " + log +
                     " --checkpoint " + checkpoint.string());
  };
  const fs::path saved = folder.path() / "saved", empty = folder.path() / "empty";
  REQUIRE(run(saved).exit_code == 0);
  const auto names = names_in(log);
  const std::string csv = contents(fs::path(log) / "scalars.csv");
  fs::create_directory(empty);
  for (const auto& checkpoint : {empty, folder.path() / "mistyped"}) {
    const RunResult ran = run(checkpoint);
    check_refused(ran, 2, "sconce-train: --scalars: " + log + " contains the ");
    CHECK_THAT(ran.err,
               ContainsSubstring(checkpoint.string() + " contains no run to continue; specify "));
    CHECK(names_in(log) == names);
    CHECK(contents(fs::path(log) / "scalars.csv") == csv);
  }
  // These are the files that a run leaves behind if it is killed before its first checkpoint.
  for (const auto& name : names_in(saved)) {
    if (name.ends_with(".pt")) fs::remove(saved / name);
  }
  const std::string learnt = learnt_in(log);
  CHECK(run(saved).exit_code == 0);
  CHECK(learnt_in(log) == learnt);
}

TEST_CASE("a run that cannot write its scalars to a full disk warns once and completes") {
  const TempDir folder;
  const std::string log = (folder.path() / "log").string();
  const std::string command = train_command("--model linear --epochs 20 --device cpu --scalars ");
  const RunResult full =
      sconce::test::run_program("(trap '' XFSZ; ulimit -f 8; exec " + command + log + ")");
  INFO(full.err);
  CHECK(full.exit_code == 0);
  CHECK(lines_of(full.err) == 1);
  CHECK_THAT(full.err, ContainsSubstring("Warning: sconce::ScalarLogger: ") &&
                           ContainsSubstring("cannot write it: File too large"));
  CHECK_THAT(full.out, ContainsSubstring("epoch 20/20"));
  const std::string text = contents(folder.path() / "log" / "scalars.csv");
  CHECK(lines_of(text) > 7);
  CHECK(text.ends_with('\n'));
  const RunResult none = sconce::test::run_program(command + "/proc/no/such");
  INFO(none.err);
  CHECK(none.exit_code == 0);
  CHECK(lines_of(none.err) == 1);
  CHECK_THAT(none.err, ContainsSubstring("/proc/no/such"));
}

TEST_CASE("a NaN loss is written without a sign in the log and in metrics.csv") {
  const TempDir folder;
  const RunResult ran =
      ended("--model linear --epochs 1 --device cpu --lr 1e300 --out " + folder.path().string());
  CHECK_THAT(ran.out, ContainsSubstring("loss nan") && !ContainsSubstring("-nan"));
  CHECK(losses_of(folder.path() / "metrics.csv") == std::vector<std::string>{"nan"});
}

TEST_CASE("a run resumes only with its original flags, and the error names the changed flag",
          "[alone]") {
  const TempDir folder;
  const auto run = [&](const std::string& name, const std::string& flags) {
    return run_train("--model linear --checkpoint " + (folder.path() / name).string() + " " +
                     flags);
  };
  REQUIRE(run("one", "--scheduler onecycle --epochs 1").exit_code == 0);
  const auto refuse = [&](const std::string& flags, const std::string& error) {
    INFO(flags);
    check_refused(run("one", "--resume --scheduler onecycle " + flags), 2,
                  "sconce-train: " + error);
  };
  const std::string has = ": the run in " + (folder.path() / "one").string() + " has ";
  refuse("--epochs 1 --optimizer adam", "--optimizer" + has + "sgd, not adam");
  refuse("--epochs 1 --lr 0.1", "--lr" + has + "0.05, not 0.1");
  refuse("--epochs 1 --accumulate 2", "--accumulate" + has + "1, not 2");
  refuse("--epochs 2", "--epochs" + has + "1, not 2");
  CHECK(run("one", "--resume --scheduler onecycle --epochs 1 --lr 5e-2").exit_code == 0);

  REQUIRE(run("two", "--scheduler none --epochs 1").exit_code == 0);
  const RunResult more = run("two", "--scheduler none --resume --epochs 2 --save-every 5");
  CHECK(more.exit_code == 0);
  CHECK_THAT(more.out, ContainsSubstring("resuming from ") && ContainsSubstring("epoch 2/2"));
}

TEST_CASE("a run resumes only on its original data, and the error names the data that differs") {
  const TempDir data, folder;
  fs::copy(digits, data.path());
  const std::string saved = (folder.path() / "saved").string();
  const auto run = [&](const std::string& flags) {
    return run_train("--model linear --scheduler none --device cpu --checkpoint " + saved + flags);
  };
  const std::string of_folder = " --data " + data.path().string();
  REQUIRE(run(of_folder + " --epochs 1").exit_code == 0);
  const auto names = names_in(saved);
  const std::string facts = contents(fs::path(saved) / "flags.txt");
  check_refused(
      run(" --epochs 2 --resume"), 2,
      "sconce-train: --data: the run in " + saved + " has a folder of IDX files, not digits\n");
  for (const std::string file : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
    fs::rename(data.path() / ("train" + file), data.path() / "swapped");
    fs::rename(data.path() / ("t10k" + file), data.path() / ("train" + file));
    fs::rename(data.path() / "swapped", data.path() / ("t10k" + file));
  }
  check_refused(
      run(of_folder + " --epochs 2 --resume"), 2,
      "has 1437 training and 360 test examples, not 360 training and 1437 test examples\n");
  CHECK(names_in(saved) == names);
  CHECK(contents(fs::path(saved) / "flags.txt") == facts);

  // Earlier versions did not store information about the dataset.
  const std::string earlier = std::regex_replace(facts, std::regex("--data[^\n]*\n"), "");
  REQUIRE(lines_of(facts) - lines_of(earlier) == 3);
  folder.write("saved/flags.txt", earlier);
  CHECK(run(" --epochs 2 --resume").exit_code == 0);
  CHECK_THAT(contents(fs::path(saved) / "flags.txt"), ContainsSubstring("--data digits\n"));
}

TEST_CASE("a FIFO in place of a run's flags.txt is rejected without blocking") {
  const TempDir folder;
  train::CommandLine line;
  line.data = "digits";
  line.checkpoint = folder.path();
  REQUIRE(::mkfifo((folder.path() / "flags.txt").c_str(), 0600) == 0);
  const auto data = train::open_images(line, {});
  CHECK_THAT(sconce::test::error_of([&] { train::check_run_flags(line, data); }),
             ContainsSubstring("flags.txt: expected a regular file, found a FIFO"));
}

namespace {

// Saves a two-epoch run in a temporary folder and starts runs that continue it.
class RunOfTwo {
 public:
  explicit RunOfTwo(const std::string& scheduler) : scheduler_(scheduler) {
    REQUIRE(train("--epochs 2").exit_code == 0);
  }

  RunResult train(const std::string& flags) const {
    return run_train("--model linear --batch-size 500 --device cpu --scheduler " + scheduler_ +
                     " --scalars-every 1 --scalars " + (folder_.path() / "scalars").string() +
                     " --checkpoint " + saved().string() + " " + flags);
  }

  fs::path saved() const { return folder_.path() / "saved"; }
  fs::path file() const { return saved() / "checkpoint-000002-00000000.pt"; }

  // Returns the learning rate for each step as a string, exactly as it was written.
  std::vector<std::string> rates() const {
    const std::string csv = contents(folder_.path() / "scalars" / "scalars.csv");
    const std::regex rate(",lr_step,([^,]*),");
    std::vector<std::string> found;
    for (std::sregex_iterator it(csv.begin(), csv.end(), rate), end; it != end; ++it) {
      found.push_back((*it)[1]);
    }
    return found;
  }

  // Checks that the exit code is 2, the error is a single line, and the saved run is unchanged.
  void check_refused(const std::string& flags, const std::string& error) const {
    const auto names = names_in(saved());
    const std::string run_flags = contents(saved() / "flags.txt");
    const fs::path out = folder_.path() / "out";
    INFO(scheduler_ << " " << flags);
    sconce::test::check_refused(train(flags + " --out " + out.string()), 2,
                                "sconce-train: " + error);
    CHECK_FALSE(fs::exists(out));
    CHECK(names_in(saved()) == names);
    CHECK(contents(saved() / "flags.txt") == run_flags);
  }

 private:
  const TempDir folder_;
  std::string scheduler_;
};

// Returns the number of epochs that a run's cosine schedule covers if `epochs` epochs are
// requested.
int64_t epochs_of_cosine(int epochs, const train::SavedRun& saved) {
  train::CommandLine line;
  line.epochs = epochs;
  line.checkpoint = "folder";
  return train::schedule_span(line, saved, 10).epochs;
}

}  // namespace

TEST_CASE("a resumed run keeps its schedule's epoch count unless --restart-schedule is given") {
  const std::string scheduler = GENERATE("step", "cosine", "onecycle");
  const RunOfTwo run(scheduler);
  const auto first = run.rates();
  REQUIRE(first.size() == 6);
  run.check_refused("--epochs 4 --resume",
                    "--epochs: the run in " + run.saved().string() + " has 2, not 4; ");
  run.check_refused("--epochs 2 --resume --restart-schedule",
                    "--restart-schedule: the run in " + run.saved().string() +
                        " has finished 2 epochs, so no epochs remain with --epochs 2");
  const RunResult more = run.train("--epochs 4 --resume --restart-schedule");
  INFO(more.err);
  CHECK(more.exit_code == 0);
  CHECK(more.err.empty());
  CHECK_THAT(more.out,
             ContainsSubstring("restarting the schedule: " + scheduler + " over epochs 3 to 4") &&
                 ContainsSubstring("epoch 4/4"));
  auto twice = first;
  twice.insert(twice.end(), first.begin(), first.end());
  CHECK(run.rates() == twice);
}

TEST_CASE("without a scheduler, a run can be resumed for any number of epochs") {
  const RunOfTwo run("none");
  const RunResult more = run.train("--epochs 4 --resume");
  INFO(more.err);
  CHECK(more.exit_code == 0);
  CHECK_THAT(more.out, ContainsSubstring("epoch 4/4"));
  CHECK(run.rates() == std::vector<std::string>(12, run.rates().front()));
  run.check_refused("--epochs 5 --resume --restart-schedule",
                    "--restart-schedule: requires a --scheduler other than none");
}

TEST_CASE(
    "a version 0.2 checkpoint without an epoch count can be resumed, with or without restarting "
    "its schedule") {
  const RunOfTwo run("cosine");
  const auto file = sconce::io::load_torch(run.file()).toGenericDict();
  REQUIRE(file.erase("schedule") == 1);
  sconce::io::save_torch(run.file(), file);
  const RunResult same = run.train("--epochs 2 --resume");
  INFO(same.err);
  CHECK(same.exit_code == 0);
  CHECK_THAT(same.out, ContainsSubstring("the checkpoint does not record how many epochs its "
                                         "schedule covers; assuming 2 epochs\n"));
  const RunResult more = run.train("--epochs 4 --resume --restart-schedule");
  INFO(more.err);
  CHECK(more.exit_code == 0);
  CHECK(more.err.empty());
  const auto first = run.rates();
  CHECK(first[6] == first[0]);
  const RunResult again = run.train("--epochs 4 --resume");  // the run now has four epochs
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, !ContainsSubstring("restarting"));
}

TEST_CASE("a restarted schedule continues when its run is resumed") {
  train::SavedRun saved{
      .epochs = std::vector<sconce::EpochMetrics>(5), .scheduler_steps = 3, .schedule_epochs = 8};
  CHECK(epochs_of_cosine(8, saved) == 6);  // from the third epoch
  CHECK_THROWS_AS(epochs_of_cosine(9, saved), train::UsageError);
  saved.schedule_epochs.reset();  // as in version 0.2
  CHECK(epochs_of_cosine(9, saved) == 7);
}

TEST_CASE("sconce-train --restart-schedule requires a run to resume") {
  check_each_usage_error("", {"--restart-schedule", "--restart-schedule --checkpoint x"},
                         ": requires --resume");
  const TempDir folder;
  const fs::path empty = folder.path() / "empty";
  const RunResult ran =
      run_train("--model linear --resume --restart-schedule --checkpoint " + empty.string());
  INFO(ran.err);
  CHECK(ran.exit_code == 2);
  CHECK_THAT(ran.err, ContainsSubstring("--restart-schedule: found no run in " + empty.string()));
  CHECK_THAT(ran.out, !ContainsSubstring("epoch 1/"));
}

TEST_CASE(
    "in sconce-train, --parallel data and a single-process group produce the same losses as "
    "--parallel none",
    "[alone]") {
  const std::string flags = "--model mlp --epochs 2 --device auto --parallel ";
  const auto none = losses(flags + "none");
  if (sconce::num_gpus() < 2) CHECK(losses(flags + "data") == none);
  CHECK(losses(flags + "distributed") == none);
}

TEST_CASE(
    "two processes match a single process that uses twice the batch size, and only the first "
    "process writes files",
    "[distributed]") {
  const std::string more =
      GENERATE("", "--graph", "--accumulate 2 --clip 1 --scheduler onecycle --ema 0.9");
  const TempDir folder;
  const std::string out = (folder.path() / "two").string();
  std::vector<std::string> command = {"sh", "-c",
                                      train_command("--model mlp --epochs 3 --device cpu "
                                                    "--parallel distributed --batch-size 32 " +
                                                    more + " --out " + out)};
  auto ranks = sconce::test::start_ranks(2, command);
  sconce::test::wait_for(ranks, sconce::test::Seconds(90));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
    CHECK(rank->err() == "");
  }
  CHECK_THAT(ranks[0]->out(), ContainsSubstring("training on cpu in the first of 2 processes") &&
                                  ContainsSubstring("epoch 3/3: loss"));
  CHECK(ranks[1]->out() == "");
  CHECK(names_in(out) == std::vector<std::string>{"confusion.svg", "metrics.csv",
                                                  "model.safetensors", "training.svg"});
  CHECK(examples_in(fs::path(out) / "confusion.svg") == 360);  // from both ranks
  const std::string one = (folder.path() / "one").string();
  ended("--model mlp --epochs 3 --device cpu " + more + " --out " + one);
  check_as_one(fs::path(out) / "metrics.csv", fs::path(one) / "metrics.csv");
}

TEST_CASE("sconce-train runs under torchrun", "[distributed][python]") {
  sconce::test::require_torchrun();
  const TempDir folder;
  const RunResult ran = sconce::test::run_program(
      sconce::test::torchrun().string() + " --standalone --nproc-per-node=2 --no-python " +
      train_program +
      " --model mlp --epochs 2 --device cpu --parallel distributed --batch-size 32 --out " +
      folder.path().string());
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("in the first of 2 processes"));
  const TempDir one;
  ended("--model mlp --epochs 2 --device cpu --out " + one.path().string());
  check_as_one(folder.path() / "metrics.csv", one.path() / "metrics.csv");
}

namespace {

bool holds_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".pt") return true;
  }
  return false;
}

// Returns the IDs of processes whose command line contains `argument` and whose environment
// contains `variable`.
std::vector<int> processes_with(const std::string& argument, const std::string& variable) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = contents(entry.path() / "cmdline");
    const std::string variables = '\0' + contents(entry.path() / "environ");
    if (command.starts_with(train_program) && command.find(argument) != command.npos &&
        variables.find('\0' + variable + '\0') != variables.npos) {
      found.push_back(std::stoi(entry.path().filename().string()));
    }
  }
  return found;
}

}  // namespace

TEST_CASE(
    "a run saves its state before SIGTERM terminates the process, and resuming gives the same "
    "result as an uninterrupted run",
    "[distributed]") {
  const TempDir folder;
  const std::string run = (folder.path() / "run").string();
  const std::vector<std::string> command = {
      train_program, "--model",     "lenet", "--epochs",     "6",        "--device",
      "cpu",         "--optimizer", "adamw", "--scheduler",  "onecycle", "--precision",
      "fp16",        "--ema",       "0.9",   "--accumulate", "2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return std::make_unique<sconce::test::Process>(more, sconce::test::Variables{});
  };
  sconce::test::Processes stopped;
  stopped.push_back(with({"--checkpoint", run, "--save-every", "5", "--out", run}));
  wait_until([&] { return holds_checkpoint(run); });
  stopped[0]->send(SIGTERM);
  wait_for(stopped, sconce::test::Seconds(30));
  CHECK(stopped[0]->exit_code == 143);
  CHECK_THAT(stopped[0]->err(),  // after a warning about fp16 on a CPU
             EndsWith("sconce-train: stopped by SIGTERM; --resume continues from " + run + "\n"));
  CHECK_FALSE(fs::exists(fs::path(run) / "model.safetensors"));

  const std::string whole = (folder.path() / "whole").string();
  sconce::test::Processes others;
  others.push_back(with({"--checkpoint", run, "--resume", "--out", run}));
  others.push_back(with({"--out", whole}));
  wait_for(others, sconce::test::Seconds(60));
  CHECK(others[0]->exit_code == 0);
  CHECK_THAT(others[0]->out(), ContainsSubstring("resuming from " + run + "/checkpoint-00000"));
  REQUIRE(others[1]->exit_code == 0);
  CHECK(contents(fs::path(run) / "model.safetensors") ==
        contents(fs::path(whole) / "model.safetensors"));
  CHECK(losses_of(fs::path(run) / "metrics.csv") == losses_of(fs::path(whole) / "metrics.csv"));

  check_refused(run_train("--model lenet --device cpu --checkpoint " + run), 2,
                "--checkpoint: " + run +
                    " contains checkpoints from an earlier run; continue that " +
                    "run with --resume, or specify another folder");
}

TEST_CASE("a run terminated by a signal leaves charts that show only its finished epochs",
          "[alone]") {
  const TempDir folder;
  sconce::test::Processes runs;
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, SIG_DFL);  // it may be ignored here, for example in a background job
    runs.push_back(std::make_unique<sconce::test::Process>(
        std::vector<std::string>{train_program, "--model", "linear", "--epochs", "1000000",
                                 "--device", "cpu", "--out", folder.path().string()},
        sconce::test::Variables{}));
    wait_until([&] { return runs.back()->out().find("epoch 2/") != std::string::npos; });
    runs.back()->send(signal);
    wait_for(runs, sconce::test::Seconds(60));
    CHECK(runs.back()->killed_by == signal);
    check_charts_alone(folder.path());
  }
}

TEST_CASE("under torchrun with restarts enabled, a killed rank does not change the result",
          "[distributed][python]") {
  sconce::test::require_torchrun();
  const TempDir folder;
  const auto start = [&](const std::string& name) {
    const std::string run = (folder.path() / name).string();
    return std::make_unique<sconce::test::Process>(
        std::vector<std::string>{sconce::test::torchrun().string(),
                                 "--standalone",
                                 "--nproc-per-node=2",
                                 "--max-restarts=1",
                                 "--no-python",
                                 train_program,
                                 "--model",
                                 "lenet",
                                 "--epochs",
                                 "6",
                                 "--device",
                                 "cpu",
                                 "--parallel",
                                 "distributed",
                                 "--timeout",
                                 "20",
                                 "--checkpoint",
                                 run,
                                 "--save-every",
                                 "3",
                                 "--resume",
                                 "--scalars",
                                 run + "-scalars",
                                 "--scalars-every",
                                 "2",
                                 "--out",
                                 run + "-out"},
        sconce::test::Variables{});
  };
  sconce::test::Processes runs;
  runs.push_back(start("killed"));
  const auto killed = folder.path() / "killed", whole = folder.path() / "whole";
  wait_until([&] { return holds_checkpoint(killed); });
  const auto ranks = processes_with(killed.string(), "RANK=1");
  REQUIRE(ranks.size() == 1);
  kill(ranks[0], SIGKILL);
  wait_for(runs, sconce::test::Seconds(100));
  INFO(runs[0]->err());
  REQUIRE(runs[0]->exit_code == 0);
  CHECK_THAT(runs[0]->out(), ContainsSubstring("resuming from " + killed.string()));
  runs.push_back(start("whole"));
  wait_for(runs, sconce::test::Seconds(100));
  REQUIRE(runs[1]->exit_code == 0);
  CHECK(contents(killed.string() + "-out/model.safetensors") ==
        contents(whole.string() + "-out/model.safetensors"));
  CHECK(losses_of(killed.string() + "-out/metrics.csv") ==
        losses_of(whole.string() + "-out/metrics.csv"));
  CHECK_THAT(learnt_in(whole.string() + "-scalars"), ContainsSubstring(",6,test_acc,"));
  CHECK(learnt_in(killed.string() + "-scalars") == learnt_in(whole.string() + "-scalars"));
}

TEST_CASE("sconce-train runs under mpirun", "[distributed]") {
  if (sconce::test::run_program("mpirun --version").exit_code != 0) {
    SKIP("needs Open MPI's mpirun, and there is none in the PATH");
  }
  const RunResult ran = sconce::test::run_program(
      std::string("mpirun --allow-run-as-root --oversubscribe -np 2 ") + train_program +
      " --model mlp --epochs 2 --device cpu --parallel distributed --batch-size 32");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("in the first of 2 processes"));
}

TEST_CASE("if one process is killed, the others exit with code 1 and an error", "[distributed]") {
  const TempDir folder;
  auto ranks = sconce::test::start_ranks(
      2, {train_program, "--model", "mlp", "--epochs", "100000", "--device", "cpu", "--parallel",
          "distributed", "--timeout", "3", "--out", folder.path().string()});
  const auto has_begun = [&] { return ranks[0]->out().find("epoch 2/") != std::string::npos; };
  wait_until(has_begun);
  ranks[1]->send(SIGKILL);
  sconce::test::wait_for(ranks, sconce::test::Seconds(40));
  CHECK(ranks[1]->killed_by == SIGKILL);
  const sconce::test::Seconds seconds = ranks[0]->changed_at - ranks[1]->changed_at;
  INFO(ranks[0]->err() << "after " << seconds.count() << " s");
  CHECK(ranks[0]->exit_code == 1);
  CHECK(seconds.count() <= 10);  // timeout plus process exit, which is slow on a busy machine
  CHECK_THAT(ranks[0]->err(),
             Matches("(.|\n)*sconce-train: sconce::distributed::ProcessGroup: rank "
                     "0 of 2: (all_reduce|broadcast|all_gather) failed: .*\n"));
  check_charts_alone(folder.path());
}
