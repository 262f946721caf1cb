#include "report/append_file.hpp"

#include <sys/resource.h>

#include <csignal>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::AppendFile;
using sconce::test::contents;
using sconce::test::error_of;

namespace {

// Limits the size of files that this process writes, to simulate a full disk. A write that exceeds
// the limit is truncated.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit limit = {bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  struct rlimit before_ = {};
};

}  // namespace

TEST_CASE("AppendFile appends each piece to the existing contents") {
  const sconce::test::TempDir folder;
  const auto path = folder.write("lines", "one\n");
  AppendFile file(path, "test");
  CHECK(contents(path) == "one\n");
  file.append("two\n");
  file.append("");
  file.append("three\n");
  CHECK(contents(path) == "one\ntwo\nthree\n");
}

TEST_CASE(
    "if the disk is full, AppendFile removes a partially written piece and can append later pieces",
    "[alone]") {
  const sconce::test::TempDir folder;
  const auto path = folder.path() / "lines";
  AppendFile file(path, "test");
  file.append("one\n");
  {
    const FileSizeLimit limit(8);
    CHECK_THAT(
        error_of([&] { file.append("0123456789\n"); }),
        ContainsSubstring("test: ") && ContainsSubstring("lines: cannot write it: File too large"));
    CHECK(contents(path) == "one\n");
    file.append("two\n");
  }
  file.append("0123456789\n");
  CHECK(contents(path) == "one\ntwo\n0123456789\n");
}

TEST_CASE("AppendFile does not write again to a file that it could not truncate") {
  AppendFile file("/dev/full", "test");
  CHECK_THAT(error_of([&] { file.append("x"); }), ContainsSubstring("No space left on device"));
  CHECK_THAT(error_of([&] { file.append("x"); }),
             ContainsSubstring("/dev/full: an earlier write was cut off"));
}

TEST_CASE("AppendFile reports the name of a file that it cannot open") {
  AppendFile file("/proc/no/such", "test");
  CHECK_THAT(error_of([&] { file.append("x"); }),
             ContainsSubstring("test: /proc/no/such: cannot open it: No such file"));
  CHECK_THAT(error_of([&] { AppendFile(std::string("/tmp/a\0b", 8), "test"); }),
             ContainsSubstring("test: /tmp/a: expected a path without NUL bytes"));
}
