// Tests how sconce-train splits, measures, and trains on image folders.
#include "train/picture_folder.hpp"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "support/check_refused.hpp"
#include "support/error_of.hpp"
#include "support/live_memory.hpp"
#include "support/png.hpp"
#include "train/model_file.hpp"
#include "train/models.hpp"
#include "train/training_data.hpp"
#include "vision/png.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::big_endian;
using sconce::test::check_refused;
using sconce::test::contents;
using sconce::test::png_of;
using sconce::test::run_train;
using sconce::test::RunResult;
using sconce::test::TempDir;
using sconce::test::what_of;

namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// Returns an image in which one channel dominates.
torch::Tensor colored(int64_t channel, int64_t number, int64_t height = 12, int64_t width = 10) {
  auto picture = torch::arange(height * width).add(7 * number).remainder(90);
  picture = picture.view({1, height, width}).repeat({3, 1, 1});
  picture[channel] += 150;
  return picture.to(torch::kByte);
}

// Writes a folder with two classes, "blue" and "red", and ten images per class.
void write_colors(const fs::path& folder) {
  for (int64_t i = 0; i < 10; ++i) {
    const std::string name = std::to_string(i) + ".png";
    write_file(folder / "red" / name, png_of(colored(0, i)));
    write_file(folder / "blue" / name, png_of(colored(2, i, 9 + i, 20)));
  }
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1);
}

// Returns the per-epoch lines without the elapsed seconds.
std::vector<std::string> epochs_of(const fs::path& csv) {
  std::ifstream in(csv);
  std::vector<std::string> epochs;
  for (std::string line; std::getline(in, line);) epochs.push_back(line.substr(0, line.rfind(',')));
  return epochs;
}

}  // namespace

TEST_CASE("an image folder with only one class is rejected, and the error names the folder") {
  const TempDir folder;
  write_file(folder.path() / "cat/a.png", "");
  CHECK_THAT(
      what_of([&] { train::open_folder(folder.path(), {3, 8, 8}); }),
      StartsWith(folder.path().string() + ": expected at least two class folders, found only cat"));
}

TEST_CASE(
    "IDX files next to image folders are rejected, but IDX files next to other folders are read") {
  const TempDir folder;
  fs::copy(SCONCE_DIGITS_DIR, folder.path());
  const train::CommandLine line{.data = folder.path().string(), .device = "cpu"};
  const auto refusal = [&] {
    return sconce::test::error_of([&] { train::open_images(line, {}); });
  };
  write_file(folder.path() / "run/loss.svg", "");
  write_file(folder.path() / ".hidden/a.png", "");
  fs::create_symlink("nowhere", folder.path() / "broken");
  CHECK(refusal() == "nothing was thrown");
  write_file(folder.path() / "cat/a.JPEG", "");
  const auto expected =
      folder.path().string() + ": expected IDX files or folders of images, found both";
  CHECK(refusal() == expected);
  fs::remove(folder.path() / "train-images-idx3-ubyte");
  CHECK(refusal() == expected);
}

TEST_CASE("IDX files are found under every file name used to distribute them") {
  const TempDir folder;
  const std::string name = GENERATE("train-images.idx3-ubyte.gz", "train-images.idx3-ubyte",
                                    "train-images-idx3-ubyte.gz", "train-images-idx3-ubyte");
  CHECK_FALSE(train::has_idx_files(folder.path()));
  // Some archives unpack to folders that are named like IDX files.
  fs::create_directory(folder.path() / "t10k-labels-idx1-ubyte");
  if (!name.ends_with("-idx3-ubyte"))
    fs::create_directory(folder.path() / "train-images-idx3-ubyte");
  CHECK_FALSE(train::has_idx_files(folder.path()));
  const auto file = folder.write(name, "");
  CHECK(train::has_idx_files(folder.path()));
  CHECK(train::idx_file(folder.path(), "train", "images") == file);
  CHECK(train::idx_file(folder.path(), "t10k", "labels") ==
        folder.path() / "t10k-labels-idx1-ubyte");
}

TEST_CASE("IDX files are read even if their names contain dots instead of hyphens") {
  const TempDir folder;
  for (const std::string part : {"train", "t10k"}) {
    for (const std::string kind : {"images idx3", "labels idx1"}) {
      std::string from = part + "-" + kind + "-ubyte", to = from;
      from[from.find(' ')] = '-';
      to[to.find(' ')] = '.';
      fs::copy(fs::path(SCONCE_DIGITS_DIR) / from, folder.path() / to);
    }
  }
  CHECK_FALSE(train::is_picture_folder(folder.path()));
  const train::CommandLine line{.data = folder.path().string(), .device = "cpu"};
  const auto data = train::open_images(line, {});
  CHECK(data.train_size == 1437);
  CHECK(data.test_size == 360);
}

TEST_CASE(
    "sconce-train finds the digits dataset next to the program or in the source tree, and "
    "otherwise suggests --data") {
  const TempDir folder;
  const fs::path installed = folder.path() / "share/sconce/digits";
  const fs::path program = folder.path() / "exe";
  const auto error = [&] {
    return sconce::test::error_of([&] { train::find_digits(program, folder.path() / "none"); });
  };
  const std::string instead = "; specify the folder that contains the four files: --data DIR";
  // The program's link does not exist yet, as on a system without /proc.
  CHECK(error() ==
        "--data digits: expected the folder with the digits dataset, but cannot determine this "
        "program's installation folder from " +
            program.string() + ": No such file or directory" + instead);
  CHECK(train::find_digits(program, folder.path()) == folder.path());
  fs::create_symlink(folder.path() / "bin/sconce-train", program);
  CHECK(error() == "--data digits: expected the folder with the digits dataset, found neither " +
                       installed.string() + " nor " + (folder.path() / "none").string() + instead);
  CHECK(train::find_digits(program, folder.path()) == folder.path());
  fs::create_directories(installed);
  CHECK(train::find_digits(program, folder.path()) == installed);
}

TEST_CASE(
    "a split draws the given fraction of each class, and the seed determines which examples are "
    "drawn") {
  const auto targets = torch::cat(
      {torch::zeros({100}, torch::kLong), torch::ones({11}, torch::kLong), torch::tensor({2})});
  std::vector<int64_t> all(112);
  std::iota(all.begin(), all.end(), 0);
  const auto split = train::split_examples(targets, all, 0.25, 7);
  const auto tests = torch::tensor(split.test);
  CHECK(targets.index_select(0, tests).bincount({}, 3).equal(torch::tensor({25, 3, 0})));
  auto both = split.train;
  both.insert(both.end(), split.test.begin(), split.test.end());
  std::sort(both.begin(), both.end());
  CHECK(both == all);
  CHECK(std::is_sorted(split.train.begin(), split.train.end()));
  CHECK(train::split_examples(targets, all, 0.25, 7).test == split.test);
  CHECK(train::split_examples(targets, all, 0.25, 8).test != split.test);
  const std::string error = what_of([&] { train::split_examples(targets, all, 0.001, 7); });
  CHECK_THAT(error, ContainsSubstring("--test-fraction"));
}

TEST_CASE("damaged images and non-image files are skipped and counted") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  write_colors(folder.path());
  const std::string whole = png_of(colored(0, 3));
  write_file(folder.path() / "red/3.png", whole.substr(0, whole.size() / 2));
  write_file(folder.path() / "blue/4.png", "<html>404</html>");
  const auto opened = train::open_folder(folder.path(), {3, 8, 8});
  CHECK_THAT(what_of([&] { train::check_headers(*opened); }),
             ContainsSubstring((folder.path() / "blue/4.png").string() + ": "));
  for (const int workers : {0, 2}) {
    const auto good = train::leave_out_bad(*opened, workers);
    CHECK(good.size() == 18);
    for (const int64_t bad : {4, 13}) CHECK(std::find(good.begin(), good.end(), bad) == good.end());
  }
  for (const auto& sample : opened->samples()) {
    if (sample.target == 1) write_file(sample.path, "");
  }
  CHECK_THAT(what_of([&] { train::leave_out_bad(*opened, 0); }),
             ContainsSubstring("no images remain in class "));
}

TEST_CASE("reading images enforces the pixel limit set on the command line") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  write_colors(folder.path());  // 120 pixels, and 180 to 360 in steps of 20
  const auto opened = train::open_folder(folder.path(), {3, 8, 8}, {.max_pixels = 200});
  CHECK_THAT(what_of([&] { opened->get(9); }), ContainsSubstring("at most 200 pixels"));
  CHECK_THAT(what_of([&] { train::check_headers(*opened, {.max_pixels = 200}); }),
             ContainsSubstring("at most 200 pixels"));
  CHECK(train::check_headers(*opened, {.max_pixels = 360}).size() == 20);
  CHECK(train::leave_out_bad(*opened, 0, {.max_pixels = 200}).size() == 12);
}

TEST_CASE("each channel's mean and standard deviation are computed across all images") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  write_colors(folder.path());
  for (const int64_t channels : {1, 3}) {
    train::Task images{.shape = {channels, 6, 8}};
    const auto opened = train::open_folder(folder.path(), images.shape);
    train::measure_channels(images, train::Pictures(opened, train::check_headers(*opened)), 0, 0);
    std::vector<torch::Tensor> all;
    for (int64_t i = 0; i < opened->size(); ++i) all.push_back(opened->get(i).data);
    const auto pixels = torch::stack(all).to(torch::kDouble);
    const auto values = [](const std::vector<double>& v) {
      return torch::tensor(v, torch::kDouble);
    };
    CHECK(torch::allclose(values(images.mean), pixels.mean({0, 2, 3}), 1e-6));
    CHECK(torch::allclose(values(images.std), pixels.std({0, 2, 3}), 1e-6));
  }
}

TEST_CASE(
    "the standard deviation of a constant channel is 1e-6, even if rounding makes its variance "
    "negative") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const auto picture = folder.path() / "white" / "0.png";
  write_file(picture, png_of(torch::full({1, 225, 225}, 253, torch::kByte)));
  for (int64_t i = 1; i < 1000; ++i) {
    fs::create_hard_link(picture, picture.parent_path() / (std::to_string(i) + ".png"));
  }
  write_file(folder.path() / "other" / "0.png", contents(picture));
  train::Task images{.shape = {1, 225, 225}};
  const auto opened = train::open_folder(folder.path(), images.shape);
  train::measure_channels(images, train::Pictures(opened, train::check_headers(*opened)), 0, 0);
  CHECK(images.std == std::vector<double>{1e-6F});
}

TEST_CASE(
    "a network loaded from a weights file has the same input format and classes as the saved "
    "network") {
  const TempDir folder;
  const fs::path file = folder.path() / "model.safetensors";
  const train::Task images{.shape = {3, 8, 12},
                           .mean = {0.1, -2, 1e30},
                           .std = {1, 0.3, 1e-6},
                           .classes = {"a b", "\xc3\xa9", "c"}};
  auto network = train::make_model("lenet", images.shape, 3);
  const auto state = sconce::nn::state_dict(*network);
  auto metadata = train::model_metadata("lenet", images);
  CHECK(metadata.at("format") == "pt");
  sconce::io::save_safetensors(file, state, metadata);
  const auto model = train::load_model(file);
  CHECK(model.name == "lenet");
  CHECK(model.task.shape == images.shape);
  CHECK(model.task.mean == images.mean);
  CHECK(model.task.std == images.std);
  CHECK(model.task.classes == images.classes);
  CHECK_FALSE(model.network->is_training());
  const auto x = torch::ones({1, 3, 8, 12});
  auto loaded = model.network;
  CHECK(loaded->forward(x).equal(network->forward(x)));

  const auto refuse = [&](const std::string& key, const std::string& text) {
    auto damaged = metadata;
    damaged[key] = text;
    sconce::io::save_safetensors(file, state, damaged);
    const std::string error = sconce::test::error_of([&] { train::load_model(file); });
    INFO(key << " " << text);
    CHECK_THAT(error, StartsWith(file.string() + ": expected"));
  };
  for (const char* name : {"", "alexnet", "mlp", "resnet"}) refuse("sconce.model", name);
  for (const char* shape : {"", "3\n8", "3\n8\n12\n1", "2\n8\n12", "3\n0\n12", "3\n8\n1e9",
                            "3\n8\n99999999", "1\n8\n12", "3\n16\n12", "3\n3\n3", "3x8x12"}) {
    refuse("sconce.shape", shape);
  }
  for (const char* mean : {"", "1\n2", "1\n2\nnan", "1\n2\n3\n", "a\nb\nc"}) {
    refuse("sconce.mean", mean);
  }
  for (const char* std : {"1\n2\n0", "1\n2\n-1", "1\n2\ninf"}) refuse("sconce.std", std);
  for (const char* classes : {"", "a", "a\nb\nc\nd"}) refuse("sconce.classes", classes);
  for (const auto& [key, text] : metadata) {
    auto damaged = metadata;
    damaged.erase(key);
    sconce::io::save_safetensors(file, state, damaged);
    const std::string error = sconce::test::error_of([&] { train::load_model(file); });
    const bool is_whole = key == "format";
    CHECK_THAT(error, ContainsSubstring(is_whole ? "nothing was thrown" : "found no " + key));
  }
}

TEST_CASE(
    "a small model file that describes a huge network is rejected without allocating the network") {
  const TempDir folder;
  const std::string sides = GENERATE("1\n4096\n4096", "3\n64\n64");
  const std::string name = GENERATE("linear", "mlp", "lenet", "vit_b_16", "resnet50");
  const sconce::io::Metadata metadata = {{"sconce.model", name},
                                         {"sconce.shape", sides},
                                         {"sconce.mean", sides[0] == '1' ? "0" : "0\n0\n0"},
                                         {"sconce.std", sides[0] == '1' ? "1" : "1\n1\n1"},
                                         {"sconce.classes", std::string(5'000, '\n')}};
  const fs::path file = folder.path() / "model.safetensors";
  sconce::io::save_safetensors(file, sconce::StateDict(), metadata);
  const auto live = std::make_shared<sconce::test::LiveMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
  const std::string error = sconce::test::error_of([&] { train::load_model(file); });
  CHECK_THAT(error,
             StartsWith(file.string() + ": expected weights that match the metadata's " + name));
  CHECK(live->peak < 1'000'000);
}

TEST_CASE("a model file with millions of lines is rejected with a short error that names the key") {
  const TempDir folder;
  const fs::path file = folder.path() / "model.safetensors";
  sconce::io::save_safetensors(file, sconce::StateDict(),
                               {{"sconce.model", "linear"},
                                {"sconce.shape", "1\n2\n2"},
                                {"sconce.classes", std::string(2'000'000, '\n')}});
  const std::string error = sconce::test::error_of([&] { train::load_model(file); });
  CHECK_THAT(error,
             StartsWith(file.string() + ": expected at most 1048576 lines as sconce.classes"));
  CHECK(error.size() < 1000);
}

TEST_CASE("the format of a --weights file is determined by its contents, not by its name") {
  const TempDir folder;
  const auto state = sconce::nn::state_dict(*train::make_model("mlp", {1, 8, 8}, 10));
  const fs::path zip = folder.path() / "zip.safetensors", plain = folder.path() / "plain.pt";
  sconce::io::save_torch(zip, state);
  sconce::io::save_safetensors(plain, state);
  for (const auto& file : {zip, plain}) {
    const auto read = train::load_pretrained(file, "mlp").state;
    CHECK(read.size() == state.size());
    CHECK(read["1.weight"].equal(state["1.weight"]));
  }
  const auto pickle = folder.write("pickle.safetensors", "\x80\2}q\1.");
  CHECK_THAT(sconce::test::error_of([&] { train::load_pretrained(pickle, "mlp"); }),
             ContainsSubstring(pickle.string() + ": expected a zip archive, got a bare pickle"));
  const auto fifo = folder.path() / "fifo.pt";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THAT(sconce::test::error_of([&] { train::load_pretrained(fifo, "mlp"); }),
             ContainsSubstring(fifo.string() + ": expected a regular file"));
}

TEST_CASE("training on the digits stored as images matches training on IDX files bit for bit",
          "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path pictures = folder.path() / "pictures";
  const fs::path idx = folder.path() / "idx";
  fs::create_directory(idx);
  const fs::path source = SCONCE_DIGITS_DIR;
  int64_t written = 0;
  for (const std::string part : {"train", "t10k"}) {
    const auto read = sconce::vision::read_idx(source / (part + "-images-idx3-ubyte"),
                                               source / (part + "-labels-idx1-ubyte"));
    for (int64_t i = 0; i < read.data.size(0); ++i) {
      const auto name =
          std::to_string(read.target[i].item<int64_t>()) + "/" + std::to_string(written++) + ".png";
      write_file(pictures / name, png_of(read.data[i].unsqueeze(0)));
    }
  }
  const auto opened = train::open_folder(pictures, {1, 8, 8});
  const auto split =
      train::split_examples(opened->targets(), train::check_headers(*opened), 0.2, 3);
  const auto write_idx = [&](const std::string& part, const std::vector<int64_t>& items) {
    const auto count = big_endian(static_cast<int64_t>(items.size()));
    std::string images = std::string("\0\0\x8\3", 4) + count + big_endian(8) + big_endian(8);
    std::string labels = std::string("\0\0\x8\1", 4) + count;
    for (const int64_t item : items) {
      const auto [pixels, target] = opened->get(item);
      images.append(static_cast<const char*>(pixels.const_data_ptr()), 64);
      labels += static_cast<char>(target.item<int64_t>());
    }
    write_file(idx / (part + "-images-idx3-ubyte"), images);
    write_file(idx / (part + "-labels-idx1-ubyte"), labels);
  };
  write_idx("train", split.train);
  write_idx("t10k", split.test);

  const auto train = [&](const fs::path& data, const std::string& flags) {
    const fs::path out = folder.path() / "out";
    const RunResult ran = run_train("--epochs 4 --device cpu --seed 3 --data " + data.string() +
                                    " --overwrite --out " + out.string() + flags);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    return epochs_of(out / "metrics.csv");
  };
  const std::string as_digits = " --gray --image-size 8 --test-fraction 0.2";
  const auto from_idx = train(idx, "");
  REQUIRE(from_idx.size() == 5);
  CHECK(from_idx == train(pictures, as_digits));
  CHECK(from_idx == train(pictures, as_digits + " --workers 2 --skip-bad"));
  CHECK(from_idx != train(pictures, as_digits + " --augment"));
}

TEST_CASE("sconce-train learns the classes of an image folder and predicts them", "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path data = folder.path() / "colors";
  const fs::path out = folder.path() / "run";
  write_colors(data);
  const RunResult ran =
      run_train("--data " + data.string() + " --out " + out.string() +
                " --image-size 16 --epochs 10 --batch-size 4 --device cpu --workers 1 "
                "--augment --skip-bad");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out,
             ContainsSubstring(
                 "16 training and 4 test images of 16x16, 2 classes; 0 bad images left out"));
  CHECK_THAT(ran.out, ContainsSubstring("test acc 1.000\n"));

  const std::string predict = "predict --weights " + (out / "model.safetensors").string() + " ";
  const fs::path red = folder.write("r.png", png_of(colored(0, 33, 40, 30)));
  const fs::path blue = folder.write("b.png", png_of(colored(2, 44, 5, 5)));
  const RunResult predicted = run_train(predict + red.string() + " " + blue.string());
  INFO(predicted.err);
  CHECK(predicted.exit_code == 0);
  CHECK_THAT(predicted.out, Catch::Matchers::Matches(red.string() +
                                                     ": red [01]\\.\\d\\d, blue [01]"
                                                     "\\.\\d\\d\n" +
                                                     blue.string() + ": blue .*, red .*\n"));

  const fs::path wrong = folder.write("wrong.png", "no picture");
  const RunResult refused = run_train(predict + red.string() + " " + wrong.string());
  check_refused(
      refused, 1,
      "sconce-train: sconce::vision::read_image: " + wrong.string() + ": expected a PNG or JPEG");
}

TEST_CASE("a run on an image folder resumes only with the same classes and images") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path data = folder.path() / "colors";
  const std::string saved = (folder.path() / "saved").string();
  write_colors(data);
  const auto run = [&](const std::string& flags) {
    return run_train("--data " + data.string() +
                     " --model linear --image-size 8 --scheduler none --device cpu --checkpoint " +
                     saved + " " + flags);
  };
  REQUIRE(run("--epochs 1").exit_code == 0);
  const auto refuse = [&](const std::string& error) {
    const RunResult ran = run("--epochs 2 --resume");
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err == "sconce-train: --data: the run in " + saved + " has " + error + "\n");
  };
  fs::rename(data / "red", data / "amber");
  refuse("class blue, not class amber");
  fs::rename(data / "amber", data / "red");
  write_file(data / "green/0.png", png_of(colored(1, 0)));
  refuse("2 classes, not 3 classes");
  fs::remove_all(data / "green");
  for (const char* name : {"a.png", "b.png", "c.png"})
    fs::copy(data / "red/1.png", data / "red" / name);
  refuse("16 training and 4 test examples, not 18 training and 5 test examples");
  for (const char* name : {"a.png", "b.png", "c.png"}) fs::remove(data / "red" / name);
  CHECK(run("--epochs 2 --resume").exit_code == 0);
}

TEST_CASE("sconce-train fine-tunes the last layer of a torchvision network", "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path data = folder.path() / "colors";
  const fs::path weights = folder.path() / "weights.pt";
  write_colors(data);
  torch::manual_seed(5);
  const auto net = sconce::vision::models::resnet18();
  sconce::io::save_torch(weights, sconce::nn::state_dict(*net));
  const auto run = [&](const std::string& flags) {
    return run_train(
        "--model resnet18 --image-size 32 --batch-size 4 --device cpu --scheduler none"
        " --data " +
        data.string() + " --weights " + weights.string() + " " + flags);
  };
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };

  const RunResult ran = run("--freeze --epochs 2 --out " + path("whole"));
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("model: resnet18, 11177538 parameters, of which 1026 are "
                                        "trained\nweights: " +
                                        weights.string() +
                                        "; replaced the last layer (1000 classes) with a layer for "
                                        "2 classes\n"));
  const auto file = folder.path() / "whole/model.safetensors";
  const auto state = sconce::io::load_safetensors(file);
  for (const auto& item : sconce::nn::state_dict(*net)) {
    INFO(item.key());
    if (!item.key().starts_with("fc.")) CHECK(item.value().equal(state[item.key()]));
  }
  CHECK(state["fc.weight"].sizes() == torch::IntArrayRef{2, 512});
  const auto red = data / "red/1.png";
  const RunResult predicted = run_train("predict --weights " + file.string() + " " + red.string());
  CHECK_THAT(predicted.out, StartsWith(red.string() + ": red "));

  // Resuming a run halfway through training produces the same result as an uninterrupted run.
  const std::string saved = "--checkpoint " + path("saved") + " ";
  REQUIRE(run("--freeze --epochs 1 " + saved).exit_code == 0);
  const RunResult other = run("--epochs 2 --resume " + saved);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err,
             ContainsSubstring("--freeze: the run in ") && ContainsSubstring(" has yes, not no"));
  REQUIRE(run("--freeze --epochs 2 --resume --out " + path("again") + " " + saved).exit_code == 0);
  const auto resumed = sconce::io::load_safetensors(folder.path() / "again/model.safetensors");
  for (const auto& item : state) CHECK(item.value().equal(resumed[item.key()]));

  // Without --freeze, the run trains all layers.
  REQUIRE(run("--epochs 1 --out " + path("all")).exit_code == 0);
  const auto all = sconce::io::load_safetensors(folder.path() / "all/model.safetensors");
  CHECK_FALSE(all["conv1.weight"].equal(state["conv1.weight"]));
  CHECK_FALSE(all["bn1.running_mean"].equal(state["bn1.running_mean"]));
}

TEST_CASE("weights from another network are rejected before training starts", "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  const fs::path data = folder.path() / "colors";
  const fs::path weights = folder.path() / "weights.safetensors";
  const fs::path out = folder.path() / "out";
  write_colors(data);
  const auto check = [&](const std::string& why) {
    const RunResult ran = run_train("--model resnet18 --freeze --data " + data.string() +
                                    " --weights " + weights.string() + " --out " + out.string());
    check_refused(ran, 1, why);
    CHECK_THAT(ran.err, StartsWith("sconce-train: ") && ContainsSubstring(weights.string()));
    CHECK_FALSE(fs::exists(out));
  };
  check("No such file or directory");
  write_file(weights, "no weights");
  check("weights.safetensors");
  sconce::io::save_safetensors(weights,
                               sconce::nn::state_dict(*train::make_model("mlp", {3, 32, 32}, 2)));
  check(": expected weights that match --model: sconce::nn::load_state_dict: ");
}

TEST_CASE(
    "a damaged image ends training with an error that names the image, and an oversized image is "
    "rejected before training starts",
    "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  write_colors(folder.path());
  const fs::path bad = folder.path() / "red/5.png";
  std::string bytes = contents(bad);
  const std::string flags =
      "--model linear --epochs 1 --device cpu --data " + folder.path().string();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 16);
  write_file(bad, bytes);
  for (const char* workers : {" --workers 0", " --workers 2"}) {
    const RunResult damaged = run_train(flags + workers);
    CHECK(damaged.exit_code == 1);
    CHECK(last_line(damaged.err) == damaged.err);
    CHECK_THAT(damaged.err, StartsWith("sconce-train: sconce::vision::read_image: " + bad.string() +
                                       ": damaged PNG: "));
  }
  write_file(bad, sconce::test::png_header(1, 60000, 60000) + std::string(4, '\0') + "IDAT");
  const RunResult large = run_train(flags);
  CHECK(large.exit_code == 1);
  CHECK(large.out.empty());
  CHECK_THAT(large.err,
             StartsWith("sconce-train: sconce::vision::read_image_size: " + bad.string() +
                        ": expected at most 89478485 pixels (--max-pixels), got 60000"));
  const RunResult skipped = run_train(flags + " --skip-bad");
  CHECK(skipped.exit_code == 0);
  CHECK_THAT(skipped.out, ContainsSubstring("15 training and 4 test images of 32x32, 2 classes; 1 "
                                            "bad images left out"));
}

TEST_CASE("weights trained on IDX files can predict color images, which are converted to grayscale",
          "[alone]") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  REQUIRE(run_train("--epochs 5 --device cpu --out " + folder.path().string()).exit_code == 0);
  const fs::path source = SCONCE_DIGITS_DIR;
  const auto test = sconce::vision::read_idx(source / "t10k-images-idx3-ubyte",
                                             source / "t10k-labels-idx1-ubyte");
  const fs::path file = folder.path() / "model.safetensors";
  auto model = train::load_model(file);
  const auto x =
      (test.data.unsqueeze(1).to(torch::kFloat) - model.task.mean[0]) / model.task.std[0];
  const auto classes = model.network->forward(x).argmax(1);
  std::string pictures;
  std::string expected;
  for (int64_t i = 0; i < 3; ++i) {
    const auto rgb = test.data[i].unsqueeze(0).repeat({3, 1, 1});
    pictures += ' ' + folder.write(std::to_string(i) + ".png", png_of(rgb)).string();
    expected += ".*: " + std::to_string(classes[i].item<int64_t>()) + " .*\n";
  }
  const RunResult ran = run_train("predict --weights " + file.string() + pictures);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Catch::Matchers::Matches(expected));
  CHECK(std::count(ran.out.begin(), ran.out.end(), ',') == 3 * 4);
}
