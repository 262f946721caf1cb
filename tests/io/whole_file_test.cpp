#include "io/whole_file.hpp"

#include <csignal>
#include <fstream>

#include "catch.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::io::WholeFile;
using sconce::test::contents;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

void save(const fs::path& file, const std::string& text) {
  WholeFile whole(file, "save");
  whole.write(text.data(), text.size());
  whole.finish();
}

std::ptrdiff_t count(const TempDir& folder) {
  return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file that is not finished leaves the earlier one and nothing beside") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  {
    WholeFile whole(file, "save");
    whole.write("after", 5);
    CHECK(contents(file) == "before");
    CHECK(count(folder) == 2);
  }
  CHECK(contents(file) == "before");
  CHECK(count(folder) == 1);
  save(file, "after");
  CHECK(contents(file) == "after");
  CHECK(count(folder) == 1);
}

TEST_CASE("a file that is replaced keeps its permissions, and a link stays one") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, folder.path() / "link");
  save(folder.path() / "link", "after");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(contents(file) == "after");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("what a killed writer left is removed by the next, and what another writes is not") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  folder.write("file.4711-0.part", "left");
  folder.write("other.4711-0.part", "not ours");
  WholeFile one(file, "save");
  WholeFile two(file, "save");
  CHECK_FALSE(fs::exists(folder.path() / "file.4711-0.part"));
  CHECK(fs::exists(folder.path() / "other.4711-0.part"));
  one.write("one", 3);
  two.write("two", 3);
  one.finish();
  two.finish();
  CHECK(contents(file) == "two");
  CHECK(count(folder) == 2);
}

TEST_CASE("errors name the path and the cause") {
  const TempDir folder;
  CHECK_THROWS_WITH(save(folder.path() / "none" / "file", ""),
                    ContainsSubstring("save: ") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(save(folder.path(), ""), ContainsSubstring("expected a regular file"));
}
