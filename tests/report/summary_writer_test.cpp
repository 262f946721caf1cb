#include "sconce/report/summary_writer.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/event_file.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::Event;
using sconce::test::event_files;
using sconce::test::read_events;
using sconce::test::shown_scalars;
using sconce::test::TempDir;
using sconce::utils::tensorboard::SummaryWriter;

namespace {

// The bytes after the first of two records: length, its checksum, the time's key and value.
std::string after_time(const Event& event) {
  return event.bytes.substr(12 + 9, event.bytes.size() - 12 - 9 - 4);
}

}  // namespace

TEST_CASE("an event file has the bytes of Python's") {
  constexpr auto inf = std::numeric_limits<double>::infinity();
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
  pythons.erase(pythons.begin());  // it tells the version twice, and first who wrote it
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

TEST_CASE("scalars are in the file after a flush, and not before") {
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

TEST_CASE("a writer's file is named after those that are there, whatever the clock says") {
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

TEST_CASE("a folder that cannot be made and a tag of other bytes are named") {
  SummaryWriter writer("/proc/no/such");
  CHECK_THAT(sconce::test::error_of([&] { writer.flush(); }),
             ContainsSubstring("sconce::utils::tensorboard::SummaryWriter: /proc/no/such: cannot"));
  CHECK_THAT(sconce::test::error_of([&] { writer.add_scalar("\xff", 1, 1); }),
             ContainsSubstring("SummaryWriter::add_scalar: expected a tag in UTF-8"));
}
