// Makes each allocation fail in turn while a checkpoint and files in other formats are being read.
#include <torch/nn/modules/linear.h>
#include <zlib.h>

#include "catch.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/program/record.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/image.hpp"
#include "sconce/vision/image_folder.hpp"
#include "support/allocations.hpp"
#include "support/png.hpp"
#include "support/temp_dir.hpp"
#include "vision/jpeg.hpp"
#include "vision/png.hpp"

using namespace std::string_literals;
using sconce::Checkpoint;
using sconce::io::read_csv;
using sconce::test::contents;
using sconce::test::fail_each_allocation;
using sconce::test::TempDir;

namespace {

struct Run {
  sconce::NamedStates parts() { return {{"model", *model}, {"optimizer", optimizer}}; }

  void step() {
    optimizer.zero_grad();
    model->forward(torch::ones({3, 2})).square().mean().backward();
    optimizer.step();
  }

  torch::nn::Linear model{2, 1};
  sconce::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
};

}  // namespace

TEST_CASE("if any allocation fails, read_csv throws and does not terminate the process") {
  const TempDir folder;
  const auto file = folder.write("table.csv",
                                 "a long name of a column,kind,\"quoted, and missing\",target\n"
                                 "1,a long name of a category,,yes\n2.5,nan,3,no\n-999,b,4,yes\n");
  const sconce::io::CsvOptions options = {
      .target = "target", .na_values = {"-999"}, .keep_missing = true};
  fail_each_allocation([&] { read_csv(file, options); });
  sconce::io::CsvOptions known = options;
  known.columns = read_csv(file, options).columns;
  fail_each_allocation([&] { read_csv(file, known); });
  const auto bad = folder.write("bad.csv", "a,b\n1,2\n3\n4,5\n6,a text\n");
  fail_each_allocation([&] { read_csv(bad, {.skip_bad = true}); });
}

TEST_CASE("if any allocation fails, read_idx throws and does not terminate the process") {
  const TempDir folder;
  const std::string images = "\0\0\x8\3\0\0\0\2\0\0\0\2\0\0\0\2"s + "12345678",
                    labels = "\0\0\xb\1\0\0\0\2\0\1\0\2"s;
  const auto data = folder.write("images", images), target = folder.write("labels", labels);
  const auto packed = (folder.path() / "images.gz").string();
  const auto out = gzopen(packed.c_str(), "wb");
  REQUIRE(gzwrite(out, images.data(), static_cast<unsigned>(images.size())) > 0);
  REQUIRE(gzclose(out) == Z_OK);
  fail_each_allocation([&] { sconce::vision::read_idx(data, target); });
  fail_each_allocation([&] { sconce::vision::read_idx(packed); });
}

TEST_CASE(
    "if any allocation fails, reading or writing an image throws and does not terminate the "
    "process") {
  if (!sconce::vision::has_libpng() || !sconce::vision::has_libjpeg()) {
    SKIP("built without libpng or libjpeg-turbo");
  }
  using sconce::vision::ImageReadMode;
  const std::filesystem::path pictures = SCONCE_TESTS_DIR "/reference/pictures";
  for (const auto* name : {"rgb-8.png", "grey.jpg", "progressive.jpg"}) {
    INFO(name);
    const auto file = pictures / name;
    fail_each_allocation([&] { sconce::vision::read_image(file, ImageReadMode::gray); });
    fail_each_allocation([&] { sconce::vision::read_image_size(file); });
    std::string bytes = contents(file);
    const auto input =
        torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, torch::kByte);
    fail_each_allocation([&] { sconce::vision::decode_image(input, ImageReadMode::rgb_alpha); });
  }
  const TempDir folder;
  std::filesystem::create_directory(folder.path() / "class");
  const auto file = folder.path() / "class/written.png";
  const auto picture = torch::zeros({3, 4, 5}, torch::kByte);
  fail_each_allocation([&] { sconce::vision::write_png(picture, file); },
                       [&] { CHECK(sconce::vision::read_image(file).equal(picture)); });
  fail_each_allocation([&] { sconce::vision::ImageFolder(folder.path()); });
}

TEST_CASE("if any allocation fails, loading a program throws and does not terminate the process") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  torch::nn::Linear net(2, 1);
  sconce::program::record(file, net, {{"x", torch::ones({3, 2})}}, {.dynamic_shapes = {{"x", 0}}});
  fail_each_allocation([&] { sconce::program::Program::load(file); });
}

TEST_CASE(
    "if any allocation fails, saving a checkpoint throws and leaves either the old or the new file "
    "on disk") {
  const TempDir folder("/dev/shm");  // syncing is free there
  const auto path = folder.path() / "run";
  Run run, other;
  run.step();
  Checkpoint checkpoint(path);
  int64_t epoch = 0;
  checkpoint.save(run.parts(), {.epoch = epoch});
  fail_each_allocation(
      [&] {
        checkpoint.save(run.parts(), {.epoch = epoch + 1},
                        sconce::MonitoredValue("test_acc", 1.5, sconce::optim::MetricMode::max));
        ++epoch;
      },
      [&] {
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
          CHECK_NOTHROW(sconce::io::load_torch(entry.path()));
        }
        CHECK_NOTHROW(checkpoint.save(run.parts(), {.epoch = ++epoch}));
      });
  fail_each_allocation([&] { Checkpoint(path, {.resume = true}).load(other.parts()); });
  CHECK(other.model->weight.equal(run.model->weight));
}
