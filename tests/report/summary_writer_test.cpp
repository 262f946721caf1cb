#include "sconce/report/summary_writer.hpp"

#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <set>

#include "catch.hpp"
#include "sconce/vision/image.hpp"
#include "support/error_of.hpp"
#include "support/event_file.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"
#include "vision/png.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::error_of;
using sconce::test::Event;
using sconce::test::event_files;
using sconce::test::read_events;
using sconce::test::shown_scalars;
using sconce::test::TempDir;
using sconce::utils::tensorboard::AddHistogramOptions;
using sconce::utils::tensorboard::AddHParamsOptions;
using sconce::utils::tensorboard::HParams;
using sconce::utils::tensorboard::SummaryWriter;
using sconce::vision::has_libpng;

namespace {

constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr auto inf = std::numeric_limits<double>::infinity();

// Returns the bytes that follow the first two parts of a record: the length with its checksum, and
// the time with its key.
std::string after_time(const Event& event) {
  return event.bytes.substr(12 + 9, event.bytes.size() - 12 - 9 - 4);
}

// Returns values from -1/16 to 17/16, whose sums have no rounding errors.
torch::Tensor sample(at::IntArrayRef shape) {
  return torch::arange(c10::multiply_integers(shape)).remainder(37).sub(2).div(32.).view(shape);
}

torch::Tensor of_bytes(at::IntArrayRef shape) {
  return torch::arange(c10::multiply_integers(shape)).remainder(251).to(torch::kByte).view(shape);
}

void add_images(SummaryWriter& writer) {
  writer.add_image("rgb", sample({3, 5, 7}), 1, {.walltime = 1.5});
  writer.add_image("rgb bytes", of_bytes({6, 4, 3}), 2, {.walltime = 1.5, .dataformats = "HWC"});
  writer.add_image("gray", sample({8, 9}), 3, {.walltime = 1.5, .dataformats = "HW"});
  writer.add_image("mask", sample({3, 8}) > 0.5, 4, {.walltime = 1.5, .dataformats = "wh"});
  writer.add_image("one channel", sample({1, 5, 3}).to(torch::kDouble), 5, {.walltime = 1.5});
  writer.add_image("two channels", of_bytes({2, 5, 3}), 6, {.walltime = 1.5});
  writer.add_image("four channels", of_bytes({5, 4, 6}), 7,
                   {.walltime = 1.5, .dataformats = "WCH"});
  writer.add_image("labels", torch::tensor({{-1, 0}, {1, 9}}), 8,
                   {.walltime = 1.5, .dataformats = "HW"});
  writer.add_image("not a number", torch::full({3, 1, 2}, not_a_number), 9, {.walltime = 1.5});
  writer.add_images("grid", sample({10, 1, 3, 2}), 10, {.walltime = 1.5});
  writer.add_images("grid bytes", of_bytes({3, 2, 4, 3}), 11,
                    {.walltime = 1.5, .dataformats = "nhwc"});
}

void add_histograms(SummaryWriter& writer) {
  const auto values = sample({20, 10}).mul(8);
  const auto add = [&](const char* tag, const torch::Tensor& of, int64_t step,
                       AddHistogramOptions options = {}) {
    options.walltime = 1.5;
    writer.add_histogram(tag, of, step, options);
  };
  add("default bins", values.requires_grad_(), 1);
  add("integers", torch::arange(-5, 20), 2);
  add("bfloat16", sample({40}).to(torch::kBFloat16), 3);
  add("zero", torch::zeros({1}), 4);
  add("edges", values.t(), 5, {.bins = {-1, 0, 0.5, 2, 3}});
  add("outside", values, 6, {.bins = {0.5, 0.5, 1, 7, 99, 100}});
  add("fewer bins", values, 7, {.max_bins = 31});
  writer.add_histogram_raw("raw",
                           {.min = -1,
                            .max = 2,
                            .num = 3,
                            .sum = 1.5,
                            .sum_squares = 5,
                            .bucket_limits = {0, 1, 2},
                            .bucket_counts = {1, 0, 2}},
                           8, {.walltime = 1.5});
}

struct Image {
  uint64_t height = 0, width = 0, channels = 0;
  std::string png = {};
};

Image image_of(const Event& event) {
  using sconce::test::EventReader;
  const auto image = EventReader::fields(EventReader::fields(event.summary).at({4, 2}).text);
  REQUIRE(image.size() == 4);
  return {image.at({1, 0}).number, image.at({2, 0}).number, image.at({3, 0}).number,
          std::string(image.at({4, 2}).text)};
}

torch::Tensor pixels_of(std::string png) {
  return sconce::vision::decode_image(
      torch::from_blob(png.data(), {std::ssize(png)}, torch::kByte));
}

// Returns the hyperparameters from a session start event. The result is sorted, because Python
// writes hyperparameters in hash table order.
std::set<std::string> values_of(const Event& event) {
  using sconce::test::EventReader;
  std::string_view message = event.summary;
  for (const int number : {9, 1, 2, 3}) message = EventReader::fields(message).at({number, 2}).text;
  std::set<std::string> values;
  while (!message.empty()) {  // a key and a length, of one byte each
    const auto size = 2 + static_cast<size_t>(message.at(1));
    values.emplace(message.substr(0, size));
    message.remove_prefix(size);
  }
  return values;
}

// Returns the events in the only file that was written, and the events in the file from Python.
// Neither list contains the first event, which stores the version.
std::pair<std::vector<Event>, std::vector<Event>> both(const std::filesystem::path& folder,
                                                       const std::string& name) {
  REQUIRE(event_files(folder).size() == 1);
  auto ours = read_events(event_files(folder)[0]);
  auto pythons = read_events(std::string(SCONCE_TESTS_DIR "/reference/") + name);
  REQUIRE(ours.size() == pythons.size());
  CHECK(ours[0].file_version == pythons[0].file_version);
  ours.erase(ours.begin());
  pythons.erase(pythons.begin());
  return {ours, pythons};
}

}  // namespace

TEST_CASE("an event file matches Python's event file byte for byte") {
  const TempDir folder;
  {
    SummaryWriter writer(folder.path(), {.purge_step = 7});
    writer.add_scalar("loss", 0.5, 1, {.walltime = 1.5});
    writer.add_scalar("train_acc", 1 / 3., 2, {.walltime = 1763766138.123456});
    writer.add_scalar("größe", -0., 0, {.walltime = 2});
    writer.add_scalar("lr", std::nan(""), 127, {.walltime = 3});
    writer.add_scalar("lr", inf, 128, {.walltime = 4});
    writer.add_scalar("lr", -inf, int64_t{1} << 40, {.walltime = 5});
    writer.add_scalar(std::string(200, 'x'), 1e-40, 300, {.walltime = 6});
    writer.add_scalar("before", 1, -1, {.walltime = 7});
  }
  REQUIRE(event_files(folder.path()).size() == 1);
  const auto ours = read_events(event_files(folder.path())[0]);
  auto pythons = read_events(SCONCE_TESTS_DIR "/reference/summary_writer.tfevents");
  pythons.erase(pythons.begin());  // it contains the version twice, first with the writer
  REQUIRE(ours.size() == 10);
  REQUIRE(pythons.size() == 10);
  CHECK(ours[0].file_version == pythons[0].file_version);
  CHECK(after_time(ours[1]) == after_time(pythons[1]));
  CHECK(pythons[1].is_start);
  for (size_t i = 2; i < ours.size(); ++i) {
    INFO(i);
    CHECK(ours[i].bytes == pythons[i].bytes);
  }
}

TEST_CASE("scalars appear in the event file only after a flush") {
  const TempDir folder;
  const auto run = folder.path() / "new" / "run";
  SummaryWriter writer(run);
  writer.add_scalar("loss", 1, 1);
  CHECK_FALSE(std::filesystem::exists(run));
  writer.flush();
  writer.flush();
  CHECK(shown_scalars(run).size() == 1);
  writer.add_scalar("loss", 2, 2);
  CHECK(shown_scalars(run).size() == 1);
  writer.flush();
  REQUIRE(shown_scalars(run).size() == 2);
  CHECK(shown_scalars(run)[1].value == 2);
  CHECK(event_files(run).size() == 1);
  CHECK(shown_scalars(run)[1].wall_time > 1.7e9);
}

TEST_CASE("a new event file sorts after the existing ones, regardless of the clock") {
  const TempDir folder;
  folder.write("events.out.tfevents.9000000000.host.1.0", "");
  folder.write("events.out.tfevents.unknown", "");
  for (int64_t i = 1; i <= 3; ++i) {
    SummaryWriter writer(folder.path(), {.purge_step = i});
    writer.add_scalar("loss", static_cast<double>(i), i);
    writer.add_scalar("loss", -1, i + 1);
  }
  std::filesystem::remove(folder.path() / "events.out.tfevents.unknown");
  const auto files = event_files(folder.path());
  REQUIRE(files.size() == 4);
  CHECK_THAT(files[3].filename().string(),
             Catch::Matchers::StartsWith("events.out.tfevents.9000000003."));
  const auto shown = shown_scalars(folder.path());
  REQUIRE(shown.size() == 4);
  for (int i = 0; i < 3; ++i) CHECK(shown[i].value == static_cast<float>(i + 1));
}

TEST_CASE("SummaryWriter reports a folder that it cannot create and a tag that is not UTF-8") {
  SummaryWriter writer("/proc/no/such");
  CHECK_THAT(sconce::test::error_of([&] { writer.flush(); }),
             ContainsSubstring("sconce::utils::tensorboard::SummaryWriter: /proc/no/such: cannot"));
  CHECK_THAT(sconce::test::error_of([&] { writer.add_scalar("\xff", 1, 1); }),
             ContainsSubstring("SummaryWriter::add_scalar: expected a tag in UTF-8"));
}

TEST_CASE(
    "written histograms and text match Python's output byte for byte, and written images match "
    "pixel for pixel") {
  const TempDir folder;
  {
    SummaryWriter writer(folder.path());
    add_images(writer);
    add_histograms(writer);
    writer.add_text("note", "# Größe\n\n| a | b |\n| - | - |\n| 1 | 2 |", 1, {.walltime = 1.5});
    writer.add_text("nothing", "", 0, {.walltime = 1.5});
  }
  const auto [ours, pythons] = both(folder.path(), "summary_writer_tabs.tfevents");
  int images = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto fields = sconce::test::EventReader::fields(ours[i].summary);
    INFO(fields.at({1, 2}).text);
    if (!fields.contains({4, 2})) {
      CHECK(ours[i].bytes == pythons[i].bytes);
      continue;
    }
    ++images;  // zlib may have compressed them differently than Pillow's zlib
    CHECK(fields.at({1, 2}).text ==
          sconce::test::EventReader::fields(pythons[i].summary).at({1, 2}).text);
    CHECK(ours[i].step == pythons[i].step);
    CHECK(ours[i].wall_time == pythons[i].wall_time);
    const Image image = image_of(ours[i]);
    const Image expected = image_of(pythons[i]);
    CHECK(image.height == expected.height);
    CHECK(image.width == expected.width);
    CHECK(image.channels == expected.channels);
    if (has_libpng()) CHECK(pixels_of(image.png).equal(pixels_of(expected.png)));
  }
  CHECK(images == 11);
}

TEST_CASE(
    "hyperparameters are written to a subfolder of the writer's folder and match Python's output "
    "byte for byte") {
  const TempDir folder;
  SummaryWriter writer(folder.path() / "run");
  writer.add_hparams(
      {{"lr", 0.1}, {"batch_size", 32}, {"optimizer", "adamw"}, {"amp", true}, {"decay", 0.}},
      {{"hparam/accuracy", 0.75}, {"hparam/loss", not_a_number}},
      {.hparam_domain_discrete = {{"lr", {0.1, 0.01}}, {"optimizer", {"sgd", "adamw"}}},
       .run_name = "one",
       .global_step = 3});
  CHECK(sconce::test::names_in(folder.path() / "run") == std::vector<std::string>{"one"});
  const auto [ours, pythons] = both(folder.path() / "run/one", "summary_writer_hparams.tfevents");
  REQUIRE(ours.size() == 5);
  for (size_t i = 0; i < ours.size(); ++i) {
    INFO(i);
    CHECK(ours[i].wall_time > 1.7e9);
    if (i == 1) continue;  // the start event
    CHECK(after_time(ours[i]) == after_time(pythons[i]));
  }
  CHECK(ours[1].bytes.size() == pythons[1].bytes.size());
  CHECK(values_of(ours[1]) == values_of(pythons[1]));
  CHECK(values_of(ours[1]).size() == 5);
}

TEST_CASE("without a run_name, each set of hyperparameters is written to a separate folder") {
  const TempDir folder;
  SummaryWriter writer(folder.path());
  for (int64_t i = 0; i < 3; ++i) writer.add_hparams({{"i", i}}, {});
  const auto names = sconce::test::names_in(folder.path());
  REQUIRE(names.size() == 3);
  for (const auto& name : names) {
    CHECK(std::stod(name) > 1.7e9);
    CHECK(read_events(event_files(folder.path() / name).at(0)).size() == 4);
  }
}

TEST_CASE("events added after close are written to a new file, and closing again has no effect") {
  const TempDir folder;
  {
    SummaryWriter writer(folder.path(), {.purge_step = 5});
    writer.add_scalar("loss", 1, 5);
    writer.close();
    writer.close();
    CHECK(event_files(folder.path()).size() == 1);
    writer.flush();
    CHECK(event_files(folder.path()).size() == 1);
    writer.add_text("note", "more", 6);
    writer.add_scalar("loss", 2, 6);
    writer.close();
  }
  const auto files = event_files(folder.path());
  REQUIRE(files.size() == 2);
  CHECK(read_events(files[0]).size() == 3);
  REQUIRE(read_events(files[1]).size() == 3);
  CHECK(read_events(files[1])[0].file_version == "brain.Event:2");
  CHECK(shown_scalars(folder.path()).size() == 2);
}

TEST_CASE("on a GPU, SummaryWriter copies a tensor once and writes the same bytes as on the CPU",
          "[gpu]") {
  sconce::test::require_gpu();
  const TempDir folder;
  {
    SummaryWriter writer(folder.path());
    for (const auto device : {torch::kCPU, torch::kCUDA}) {
      const auto values = sample({2, 3, 5, 7}).to(device);
      const sconce::test::HostReads reads;
      writer.add_images("images", values, 1, {.walltime = 1});
      CHECK(reads.count() == (device == torch::kCUDA ? 1 : 0));
      writer.add_histogram("values", values, 1, {.walltime = 1});
    }
  }
  const auto events = read_events(event_files(folder.path()).at(0));
  REQUIRE(events.size() == 5);
  CHECK(events[1].bytes == events[3].bytes);
  CHECK(events[2].bytes == events[4].bytes);
}

namespace {

// Expects that the call throws, that the message begins with the function's name and contains the
// text, and that no data is kept for the next flush.
template <class Call>
void check_refused(const std::string& function, const Call& call, const std::string& why) {
  const TempDir folder;
  {
    SummaryWriter writer(folder.path());
    CHECK_THAT(error_of([&] { call(writer); }),
               StartsWith("sconce::utils::tensorboard::SummaryWriter::" + function + ": ") &&
                   ContainsSubstring(why));
  }
  CHECK(sconce::test::names_in(folder.path()).size() == 1);
  CHECK(read_events(event_files(folder.path()).at(0)).size() == 1);
}

}  // namespace

TEST_CASE("add_image and add_images reject an invalid image and write nothing") {
  const auto refused = [](const torch::Tensor& image, const char* formats, const char* why) {
    check_refused(
        "add_image", [&](auto& writer) { writer.add_image("a", image, 1, {{}, formats}); }, why);
    check_refused(
        "add_images", [&](auto& writer) { writer.add_images("a", image, 1, {{}, formats}); }, why);
  };
  for (const char* formats : {"", "C", "HH", "CHN", "CHWC", "NCHWD", "HC"}) {
    refused(sample({3, 4, 4}), formats,
            "expected dataformats to be a permutation of CHW, HW, or NCHW");
  }
  refused(sample({3, 4, 4}), "NCHW", "expected a tensor of 4 dimensions");
  refused(sample({3, 4, 4}), "HW", "got shape [3, 4, 4]");
  refused(torch::Tensor(), "CHW", "got an undefined one");
  refused(sample({5, 4, 4}), "CHW", "expected 1 to 4 channels, got 5");
  refused(sample({3, 4, 5}), "HWC", "expected 1 to 4 channels, got 5");
  refused(torch::ones({0, 4, 4}), "CHW", "expected 1 to 4 channels, got 0");
  refused(sample({2, 4, 4, 4}), "NCHW", "expected 1 or 3 channels, got 4");
  refused(sample({2, 2, 4, 4}), "NCHW", "expected 1 or 3 channels, got 2");
  refused(torch::ones({0, 3, 4, 4}), "NCHW",
          "expected a tensor with at least one value, got shape [0, 3");
  refused(torch::ones({3, 0, 4}), "CHW",
          "expected a tensor with at least one value, got shape [3, 0, 4]");
  refused(torch::ones({1}).expand({1 << 14, 1 << 14}), "HW",
          "expected fewer than 268435456 pixels");
  refused(torch::ones({3, 4, 4}).to_sparse(), "CHW", "expected a dense tensor of real numbers");
  refused(torch::ones({3, 4, 4}, torch::kComplexFloat), "CHW", "real numbers, got CPUComplexFloat");
  refused(torch::ones({3, 4, 4}, torch::kMeta), "CHW", "expected a dense tensor of real numbers");
}

TEST_CASE("add_histogram rejects invalid values and writes nothing") {
  const auto refused = [](const torch::Tensor& values, const AddHistogramOptions& options,
                          const char* why) {
    check_refused(
        "add_histogram", [&](auto& writer) { writer.add_histogram("a", values, 1, options); }, why);
  };
  refused(torch::empty({0}), {}, "expected a tensor with at least one value, got shape [0]");
  refused(torch::Tensor(), {}, "got an undefined one");
  refused(torch::tensor({1., not_a_number}), {}, "expected finite values, got NaN or infinity");
  refused(torch::tensor({1., -inf}), {}, "expected finite values, got NaN or infinity");
  refused(torch::tensor({1e30}), {}, "expected a value from -9");
  refused(torch::ones({3}), {.bins = {2, 3}}, "expected a value from 2 to 3, got none");
  refused(torch::ones({3}), {.bins = {1}},
          "expected bins with at least two ascending edges, got 1");
  refused(torch::ones({3}), {.bins = {1, 0}}, "expected bins with at least two ascending edges");
  refused(torch::ones({3}), {.bins = {0, not_a_number, 2}},
          "expected bins with at least two ascending edges");
  refused(torch::ones({3}), {.max_bins = 0}, "expected max_bins to be at least 1, got 0");
  refused(torch::ones({3}).to_sparse(), {}, "expected a dense tensor of real numbers");
  refused(torch::ones({3}, torch::kComplexDouble), {}, "expected a dense tensor of real numbers");
  refused(torch::ones({3}, torch::kMeta), {}, "expected a dense tensor of real numbers");
  check_refused(
      "add_histogram_raw",
      [](auto& writer) { writer.add_histogram_raw("a", {.bucket_limits = {1}}, 1); },
      "expected as many bucket_limits as bucket_counts, got 1 and 0");
}

TEST_CASE("add_hparams rejects invalid hyperparameters and writes nothing") {
  const auto refused = [](const HParams& hparams, const AddHParamsOptions& options,
                          const char* why) {
    const TempDir folder;
    SummaryWriter writer(folder.path());
    CHECK_THAT(error_of([&] { writer.add_hparams(hparams, {}, options); }),
               StartsWith("sconce::utils::tensorboard::SummaryWriter::add_hparams: ") &&
                   ContainsSubstring(why));
    CHECK(sconce::test::names_in(folder.path()).empty());
  };
  refused({{"lr", 0.1}, {"lr", 0.2}}, {}, "expected each hyperparameter once, got lr twice");
  refused({{"lr", 0.1}}, {.hparam_domain_discrete = {{"lr", {0.1, 1}}}},
          "hparam_domain_discrete: lr: expected values of the hyperparameter's type");
  refused({{"lr", 0.1}}, {.hparam_domain_discrete = {{"momentum", {0.1}}}},
          "hparam_domain_discrete: momentum: expected a hyperparameter name");
  refused({{"\xff", 0.1}}, {}, "UTF-8");
  refused({{"name", "\xff"}}, {}, "name: expected text in UTF-8");
  const TempDir folder;
  SummaryWriter writer(folder.path());
  CHECK_THAT(error_of([&] { writer.add_hparams({}, {{"a", 1}, {"a", 2}}); }),
             ContainsSubstring("add_hparams: expected each metric once, got a twice"));
  CHECK_THAT(error_of([&] { writer.add_hparams({}, {{"\xff", 1}}); }), ContainsSubstring("UTF-8"));
  folder.write("taken", "");
  CHECK_THAT(error_of([&] { writer.add_hparams({{"lr", 0.1}}, {}, {.run_name = "taken"}); }),
             ContainsSubstring("taken: cannot create the folder"));
  static_assert(!std::is_constructible_v<sconce::utils::tensorboard::HParam, torch::Tensor>);
  static_assert(!std::is_constructible_v<sconce::utils::tensorboard::HParam, const int*>);
}

TEST_CASE("SummaryWriter rejects text and tags that are not valid UTF-8 and writes nothing") {
  check_refused(
      "add_text", [](auto& writer) { writer.add_text("a", "\xff"); }, "expected text in UTF-8");
  check_refused(
      "add_text", [](auto& writer) { writer.add_text("\xff", "a"); }, "expected a tag in UTF-8");
  check_refused(
      "add_image", [](auto& writer) { writer.add_image("\xff", sample({3, 1, 1})); },
      "expected a tag in UTF-8");
  check_refused(
      "add_histogram", [](auto& writer) { writer.add_histogram("\xff", sample({1})); },
      "expected a tag in UTF-8");
}
