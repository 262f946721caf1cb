#include "sconce/report/scalar_writer.hpp"

#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/event_file.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::ScalarWriter;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::shown_scalars;
using sconce::test::TempDir;

namespace {

// Writes the scalars from step 1 of epoch 1 through step 4 of epoch 2, with two steps per epoch.
void write_run(const std::filesystem::path& folder, int64_t from = 1, int64_t to = 4,
               std::optional<int64_t> resume_step = {}) {
  ScalarWriter files(folder, {.resume_step = resume_step});
  for (int64_t step = from; step <= to; ++step) {
    files.add({.tag = "loss",
               .value = 1. / static_cast<double>(step),
               .step = step,
               .epoch = (step + 1) / 2,
               .wall_time = 0.5});
  }
  files.flush();
}

std::string error_of_resuming(const TempDir& folder, int64_t step) {
  return error_of([&] { ScalarWriter(folder.path(), {.resume_step = step}); });
}

}  // namespace

TEST_CASE(
    "ScalarWriter writes each scalar as a line of scalars.csv and as an event for TensorBoard") {
  const TempDir folder;
  const auto run = folder.path() / "new" / "run";
  ScalarWriter files(run);
  files.add({"loss", 1 / 3., 4, 2, 1763766138.25});
  CHECK_FALSE(std::filesystem::exists(run));
  files.flush();
  files.add({"odd, \"tag\"", std::nan(""), 5, 2, 0.5});
  files.add({"größe", -std::numeric_limits<double>::infinity(), 6, 3, 0.5});
  files.flush();
  CHECK(contents(run / "scalars.csv") ==
        "step,epoch,tag,value,wall_time\n"
        "4,2,loss,0.3333333333333333,1763766138.25\n"
        "5,2,\"odd, \"\"tag\"\"\",nan,0.5\n"
        "6,3,größe,-inf,0.5\n");
  const auto shown = shown_scalars(run);
  REQUIRE(shown.size() == 3);
  CHECK(shown[0].tag == "loss");
  CHECK(shown[0].value == 1 / 3.F);
  CHECK(shown[0].step == 4);
  CHECK(shown[0].wall_time == 1763766138.25);
  CHECK_THROWS_WITH(files.add({.tag = "two\nlines"}), ContainsSubstring("ScalarWriter::add"));
  CHECK_THROWS_WITH(files.add({.tag = "\xff"}), ContainsSubstring("ScalarWriter::add"));
  CHECK(names_in(run).size() == 2);
}

TEST_CASE(
    "a resumed run drops scalars logged after the step it resumes from, regardless of where "
    "scalars.csv was truncated") {
  const TempDir whole;
  write_run(whole.path(), 1, 4);
  const auto csv = contents(whole.path() / "scalars.csv");
  size_t kept = 0;
  for (int line = 0; line < 3; ++line) kept = csv.find('\n', kept) + 1;  // including the header
  for (size_t cut = kept; cut <= csv.size(); ++cut) {
    const TempDir folder;
    write_run(folder.path(), 1, 4);
    folder.write("scalars.csv", csv.substr(0, cut));
    write_run(folder.path(), 3, 4, /*resume_step=*/2);
    CHECK(contents(folder.path() / "scalars.csv") == csv);
    const auto shown = shown_scalars(folder.path());
    REQUIRE(shown.size() == 4);
    for (int64_t i = 0; i < 4; ++i) CHECK(shown[i].step == i + 1);
  }
}

TEST_CASE(
    "if a run is killed before its first save, the resumed run replaces the killed run's scalars, "
    "regardless of where scalars.csv was truncated") {
  const TempDir whole;
  write_run(whole.path(), 1, 2);
  const auto csv = contents(whole.path() / "scalars.csv");
  for (size_t cut = 0; cut <= csv.size(); ++cut) {
    const TempDir folder;
    folder.write("scalars.csv", csv.substr(0, cut));
    write_run(folder.path(), 1, 2, /*resume_step=*/0);
    CHECK(contents(folder.path() / "scalars.csv") == csv);
    CHECK(shown_scalars(folder.path()).size() == 2);
  }
}

TEST_CASE("ScalarWriter rejects a new run in another run's folder") {
  const TempDir folder;
  folder.write("notes.txt", "mine");
  write_run(folder.path());
  const auto before = contents(folder.path() / "scalars.csv");
  for (const auto& name : names_in(folder.path())) {
    if (name == "notes.txt") continue;
    const TempDir other;
    other.write(name, contents(folder.path() / name));
    CHECK_THAT(error_of([&] { ScalarWriter{other.path()}; }),
               ContainsSubstring("sconce::ScalarWriter: " + other.path().string()) &&
                   ContainsSubstring("got a folder with " + name));
    CHECK(names_in(other.path()) == std::vector{name});
  }
  const auto names = names_in(folder.path());
  CHECK_THAT(error_of_resuming(folder, 0),
             ContainsSubstring("(the run starts over), got scalars from epoch 2"));
  CHECK(names_in(folder.path()) == names);  // another event file would hide the first one's scalars
  CHECK(contents(folder.path() / "scalars.csv") == before);
}

TEST_CASE(
    "ScalarWriter rejects damaged files and files with a different header, and leaves them "
    "unchanged") {
  const auto refuses = [](const std::string& bytes, const std::string& error) {
    const TempDir folder;
    const auto path = folder.write("scalars.csv", bytes);
    CHECK_THAT(
        error_of_resuming(folder, 2),
        ContainsSubstring("sconce::ScalarWriter: " + path.string()) && ContainsSubstring(error));
    CHECK(contents(path) == bytes);
  };
  refuses("a,b\n1,2\n", "begins with step,epoch,tag,value,wall_time, got different contents");
  const std::string header = "step,epoch,tag,value,wall_time\n";
  refuses(header + "1,1,loss,0.5,0.5\nx,1,loss,0.5,0.5\n", "scalars.csv:3: ");
  refuses(header + "1\n", "scalars.csv:2: ");
  refuses(header + "1,2\n", "scalars.csv:2: ");
  const TempDir folder;
  std::filesystem::create_directory(folder.path() / "scalars.csv");
  CHECK_THAT(error_of_resuming(folder, 2), ContainsSubstring("expected a regular file"));
}

TEST_CASE("a FIFO in place of scalars.csv is rejected without waiting for its other end to open") {
  const TempDir folder;
  ScalarWriter files(folder.path());
  REQUIRE(::mkfifo((folder.path() / "scalars.csv").c_str(), 0600) == 0);
  CHECK_THAT(error_of_resuming(folder, 2),
             ContainsSubstring("scalars.csv: expected a regular file, found a FIFO"));
  CHECK_THAT(error_of([&] { files.flush(); }), ContainsSubstring("scalars.csv: cannot open it"));
}

TEST_CASE(
    "if one scalar file cannot be written, the other file is written, and the failed file catches "
    "up later") {
  const TempDir folder;
  ScalarWriter files(folder.path());
  files.add({.tag = "loss", .value = 1, .step = 1, .epoch = 1});
  std::filesystem::create_directory(folder.path() / "scalars.csv");
  CHECK_THAT(error_of([&] { files.flush(); }), ContainsSubstring("scalars.csv: cannot open it"));
  CHECK(shown_scalars(folder.path()).size() == 1);
  std::filesystem::remove(folder.path() / "scalars.csv");
  files.add({.tag = "loss", .value = 2, .step = 2, .epoch = 1});
  files.flush();
  CHECK(contents(folder.path() / "scalars.csv") ==
        "step,epoch,tag,value,wall_time\n1,1,loss,1,0\n2,1,loss,2,0\n");
  CHECK(shown_scalars(folder.path()).size() == 2);
}
