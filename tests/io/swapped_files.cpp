// While a file is being read or written, the entry at its path keeps changing between a file, a
// FIFO, a link, and a folder. No call may wait for the other end of the FIFO, and each error must
// contain the path.
#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "catch.hpp"
#include "report/append_file.hpp"
#include "sconce/io/atomic_file.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/image.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

// During its lifetime, repeatedly replaces the entry at the path in a separate thread. The last
// entry is the file.
class Swapper {
 public:
  Swapper(const TempDir& folder, std::string bytes, int swaps)
      : folder_(folder), bytes_(std::move(bytes)) {
    put(0);
    thread_ = std::thread([this, swaps] {
      for (int i = 1; i < swaps; ++i) put(i % 4);
      put(0);
      done_ = true;
    });
  }
  ~Swapper() { thread_.join(); }
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

  bool done() const { return done_; }

 private:
  void put(int kind) const {
    const fs::path path = folder_.path() / "path", next = folder_.path() / "next";
    std::error_code ignored;  // a file that a writer just created stays until the next swap
    if (kind == 0) folder_.write("next", bytes_);
    if (kind == 1) ::mkfifo(next.c_str(), 0600);
    if (kind == 2) fs::create_symlink("target", next, ignored);
    if (kind == 3) fs::create_directory(next, ignored);
    do {
      fs::remove_all(path, ignored);
      fs::rename(next, path, ignored);
    } while (ignored && kind == 0);
    fs::remove_all(next, ignored);
  }

  const TempDir& folder_;
  std::string bytes_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

using Use = std::function<void(const fs::path&)>;

// Uses the path repeatedly until the given number of swaps have occurred. Finally, uses the path
// once more and returns the resulting error.
std::string use_swapped(const Use& use, const std::string& bytes, int swaps) {
  const TempDir folder;
  folder.write("target", bytes);
  const fs::path path = folder.path() / "path";
  const auto error_of_use = [&] { return error_of([&] { use(path); }); };
  int unnamed = 0;
  {
    const Swapper swapper(folder, bytes, swaps);
    while (!swapper.done()) {
      const std::string error = error_of_use();
      if (error == "nothing was thrown") continue;
      unnamed += error.find(folder.path().string()) == error.npos ? 1 : 0;
    }
  }
  CHECK(unnamed == 0);
  const std::string last = error_of_use();
  const auto names = sconce::test::names_in(folder.path());
  CHECK(names == std::vector<std::string>{"path", "target"});
  return last;
}

void check_readers(int swaps) {
  namespace io = sconce::io;
  namespace vision = sconce::vision;
  const TempDir folder;
  const auto file = folder.path() / "file";
  sconce::StateDict state;
  state.insert("x", torch::arange(4));
  io::save_safetensors(file, state);
  const std::string safetensors = contents(file);
  io::save_torch(file, torch::IValue(7));
  const std::string pt = contents(file);
  const std::string idx("\0\0\x08\1\0\0\0\1\5", 9);
  const std::map<std::string, std::pair<Use, std::string>> readers = {
      {"load_safetensors", {[](const auto& path) { io::load_safetensors(path); }, safetensors}},
      {"load_torch", {[](const auto& path) { io::load_torch(path); }, pt}},
      {"read_csv", {[](const auto& path) { io::read_csv(path); }, "a,b\n1,2\n"}},
      {"read_idx", {[](const auto& path) { vision::read_idx(path); }, idx}},
      {"read_file", {[](const auto& path) { io::read_file(path, "read"); }, "bytes"}}};
  for (const auto& [name, reader] : readers) {
    INFO(name);
    CHECK(use_swapped(reader.first, reader.second, swaps) == "nothing was thrown");
  }
  const Use read_image = [](const auto& path) { vision::read_image(path); };
  CHECK_THAT(use_swapped(read_image, "no picture", swaps),
             Catch::Matchers::ContainsSubstring("expected a PNG or JPEG image"));
}

void check_writers(int swaps) {
  const std::map<std::string, Use> writers = {
      {"write_file", [](const auto& path) { sconce::io::write_file(path, "new", "write"); }},
      {"AppendFile", [](const auto& path) { sconce::AppendFile(path, "append").append("new"); }}};
  for (const auto& [name, writer] : writers) {
    INFO(name);
    CHECK(use_swapped(writer, "old", swaps) == "nothing was thrown");
  }
}

}  // namespace

TEST_CASE("no reader hangs while its file is being replaced with a FIFO, a link, or a folder",
          "[alone]") {
  check_readers(400);
}

TEST_CASE("no writer hangs while its file is being replaced with a FIFO, a link, or a folder",
          "[alone]") {
  check_writers(400);
}

TEST_CASE("no reader or writer hangs while its file is being replaced 100,000 times", "[.][slow]") {
  check_readers(100'000);
  check_writers(100'000);
}
