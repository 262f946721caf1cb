#include "sconce/vision/idx.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::error_of;
using sconce::test::TempDir;
using sconce::vision::read_idx;
using namespace std::string_literals;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr uint32_t kTwoTo31 = uint32_t{1} << 31;

std::string header(uint8_t type, const std::vector<uint32_t>& sizes) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 255);
  }
  return bytes;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzipFormat = 15 + 16;
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// The file is written in pieces, because a peak-memory test must not raise the peak itself.
void write_gzip_bomb(const fs::path& file, const std::string& head, int64_t zeros) {
  const std::string piece(kMiB, '\0');
  const gzFile stream = gzopen(file.c_str(), "wb1");
  REQUIRE(gzwrite(stream, head.data(), static_cast<unsigned>(head.size())) > 0);
  for (int64_t i = 0; i < zeros / kMiB; ++i) {
    REQUIRE(gzwrite(stream, piece.data(), static_cast<unsigned>(piece.size())) > 0);
  }
  REQUIRE(gzclose(stream) == Z_OK);
}

// Returns the message of the c10::Error that `call` throws, after checking the format that all
// messages share.
std::string refusal(const fs::path& named, const std::function<void()>& call) {
  std::string message;
  try {
    call();
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }
  INFO(message);
  CHECK_THAT(message, StartsWith("sconce::vision::read_idx: " + named.string() + ": "));
  CHECK_THAT(message, ContainsSubstring(": cannot open it: ") ||
                          (ContainsSubstring(": expected ") && ContainsSubstring(", found ")));
  CHECK(message.find('\n') == std::string::npos);
  return message.substr(message.find(named.string()) + named.string().size());
}

std::string refusal(const fs::path& file) {
  return refusal(file, [&] { read_idx(file); });
}

// Reads the contents both uncompressed and gzipped, and checks that the results match.
torch::Tensor read_both_ways(const std::string& bytes) {
  const TempDir dir;
  torch::Tensor plain = read_idx(dir.write("plain", bytes));
  const torch::Tensor unpacked = read_idx(dir.write("packed", gzip(bytes)));
  CHECK(plain.scalar_type() == unpacked.scalar_type());
  CHECK(plain.sizes() == unpacked.sizes());
  CHECK(torch::equal(plain, unpacked));
  return plain;
}

std::string counting_bytes(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux reports KiB
}

// Returns the value of the "VmSize" or "VmPeak" field. Both sizes include memory that was allocated
// but never touched.
int64_t address_space_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kib = 0;
  while (status >> word) {
    if (word == field + ":" && status >> kib) break;
  }
  REQUIRE(kib > 0);
  return kib * 1024;
}

void check_refused_without_memory(const fs::path& file) {
  const int64_t resident = peak_resident_bytes();
  const int64_t now = address_space_bytes("VmSize");
  const int64_t peak = address_space_bytes("VmPeak");
  CHECK_THAT(refusal(file), ContainsSubstring("found a file that is too small"));
  CHECK(peak_resident_bytes() - resident < 64 * kMiB);
  CHECK(address_space_bytes("VmPeak") <= std::max(peak, now + 64 * kMiB));
}

// Drops root privileges for the lifetime of the object, because root can read every file.
class AsOrdinaryUser {
 public:
  AsOrdinaryUser() { ordinary_ = geteuid() != 0 || seteuid(65534) == 0; }
  ~AsOrdinaryUser() {
    if (getuid() == 0 && geteuid() != 0 && seteuid(0) != 0) std::abort();
  }
  AsOrdinaryUser(const AsOrdinaryUser&) = delete;
  AsOrdinaryUser& operator=(const AsOrdinaryUser&) = delete;
  explicit operator bool() const { return ordinary_; }

 private:
  bool ordinary_ = false;
};

}  // namespace

TEST_CASE("read_idx reads all six element types from both plain and gzipped files") {
  SECTION("uint8") {
    const auto tensor = read_both_ways(header(0x08, {2}) + "\x00\xff"s);
    CHECK(torch::equal(tensor, torch::tensor({0, 255}, torch::kByte)));
  }
  SECTION("int8") {
    const auto tensor = read_both_ways(header(0x09, {2}) + "\x7f\xff"s);
    CHECK(torch::equal(tensor, torch::tensor({127, -1}, torch::kChar)));
  }
  SECTION("int16") {
    const auto tensor = read_both_ways(header(0x0B, {2}) + "\x01\x02\xff\xfe"s);
    CHECK(torch::equal(tensor, torch::tensor({258, -2}, torch::kShort)));
  }
  SECTION("int32") {
    const auto tensor = read_both_ways(header(0x0C, {2}) + "\x01\x02\x03\x04\xff\xff\xff\xfd"s);
    CHECK(torch::equal(tensor, torch::tensor({16909060, -3}, torch::kInt)));
  }
  SECTION("float32") {
    const auto tensor = read_both_ways(header(0x0D, {2}) + "\x3f\xc0\x00\x00\xc0\x49\x0f\xdb"s);
    CHECK(torch::equal(tensor, torch::tensor({1.5F, -3.14159274F}, torch::kFloat)));
  }
  SECTION("float64") {
    const auto tensor = read_both_ways(header(0x0E, {1}) + "\xc0\x09\x21\xfb\x54\x44\x2d\x18"s);
    CHECK(torch::equal(tensor, torch::tensor({-3.141592653589793}, torch::kDouble)));
  }
}

TEST_CASE("read_idx preserves the rank and the order of dimensions") {
  const std::vector<std::vector<uint32_t>> shapes = {{}, {3}, {2, 3}, {4, 2, 3}, {2, 1, 3, 4}};
  for (const auto& shape : shapes) {
    int64_t count = 1;
    for (const uint32_t size : shape) count *= size;
    const auto tensor = read_both_ways(header(0x08, shape) + counting_bytes(count));
    CHECK(tensor.sizes() == std::vector<int64_t>(shape.begin(), shape.end()));
    CHECK(torch::equal(tensor.reshape(-1), torch::arange(count, torch::kByte)));
    CHECK(tensor.is_contiguous());
    CHECK(tensor.device() == torch::Device(torch::kCPU));
  }
}

TEST_CASE("read_idx reads a tensor of rank 255, the highest rank that the format allows") {
  const auto tensor = read_both_ways(header(0x08, std::vector<uint32_t>(255, 1)) + "\x07");
  CHECK(tensor.dim() == 255);
  CHECK(tensor.item<int>() == 7);
}

TEST_CASE("read_idx reads a file with no elements") {
  CHECK(read_both_ways(header(0x0D, {0, 28, 28})).sizes() == std::vector<int64_t>{0, 28, 28});
}

TEST_CASE("read_idx reads a dimension of 2^31 as a positive number") {
  CHECK(read_both_ways(header(0x08, {kTwoTo31, 0})).size(0) == 2147483648);
}

TEST_CASE("read_idx reads contents larger than its buffer") {
  std::string payload = counting_bytes(300'000);
  const auto tensor = read_both_ways(header(0x08, {300'000}) + payload);
  CHECK(torch::equal(tensor, torch::arange(300'000).remainder(256).to(torch::kByte)));
}

TEST_CASE("read_idx reads a gzipped file without the extension .gz") {
  const TempDir dir;
  CHECK(read_idx(dir.write("images-idx1-ubyte", gzip(header(0x08, {1}) + "\x05"))).numel() == 1);
}

TEST_CASE("read_idx rejects a path that is not a regular file") {
  const TempDir dir;
  SECTION("a missing file") {
    CHECK(refusal(dir.path() / "no") == ": cannot open it: No such file or directory");
  }
  SECTION("a folder") {
    CHECK(refusal(dir.path()) == ": expected a regular file, found a folder");
  }
  SECTION("a FIFO, without waiting for its writer") {
    const fs::path fifo = dir.path() / "fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(refusal(fifo) == ": expected a regular file, found a FIFO");
  }
  SECTION("a device, which may never end") {
    CHECK(refusal("/dev/zero") == ": expected a regular file, found a device");
  }
}

TEST_CASE("read_idx rejects a file without read permission and reports the system's reason") {
  const TempDir dir;
  const fs::path file = dir.write("secret", header(0x08, {1}) + "\x05");
  fs::permissions(file, fs::perms::none);
  std::string message;
  {
    const AsOrdinaryUser user;
    if (!user) SKIP("this process is root and may not become another user");
    message = refusal(file);
  }
  CHECK(message == ": cannot open it: Permission denied");
}

TEST_CASE("read_idx rejects a file in a folder without access permission") {
  const TempDir dir;
  const fs::path folder = dir.path() / "closed";
  fs::create_directory(folder);
  const fs::path file = dir.write("closed/file", header(0x08, {1}) + "\x05");
  fs::permissions(folder, fs::perms::none);
  std::string message;
  {
    const AsOrdinaryUser user;
    if (!user) SKIP("this process is root and may not become another user");
    message = refusal(file);
  }
  fs::permissions(folder, fs::perms::owner_all);
  CHECK(message == ": cannot open it: Permission denied");
}

TEST_CASE("read_idx rejects a truncated or invalid header in both plain and gzipped files") {
  const TempDir dir;
  const auto refused = [&](const std::string& bytes) {
    std::string plain = refusal(dir.write("plain", bytes));
    CHECK(refusal(dir.write("packed", gzip(bytes))) == plain);
    return plain;
  };
  CHECK(refused("") == ": magic number: expected 4 bytes, found 0");
  CHECK(refused("\0\0\x08"s) == ": magic number: expected 4 bytes, found 3");
  CHECK(refused("\x89PNG\r\n") == ": magic number: expected 0x00 0x00 first, found 0x89 0x50");
  CHECK(refused("\0\x01\x08\x01\0\0\0\0"s) ==
        ": magic number: expected 0x00 0x00 first, found 0x00 0x01");
  CHECK(refused("\x01\0\x08\x01\0\0\0\0"s) ==
        ": magic number: expected 0x00 0x00 first, found 0x01 0x00");
  CHECK(refused(header(0x0A, {1}) + "\x05") ==
        ": type: expected one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e, found 0x0a");
  CHECK(refused(header(0x08, {1, 1}).substr(0, 11)) ==
        ": dimensions: expected 8 bytes for rank 2, found 7");
  CHECK(refused("\0\0\x08\xff"s) == ": dimensions: expected 1020 bytes for rank 255, found 0");
}

TEST_CASE("read_idx rejects a shape whose size in bytes overflows") {
  const TempDir dir;
  CHECK(refusal(dir.write("large", header(0x0E, {kTwoTo31, kTwoTo31}))) ==
        ": dimensions: expected at most 9223372036854775807 bytes of payload, found shape "
        "[2147483648, 2147483648] of Double");
  const std::vector<uint32_t> wraps_to_zero = {kTwoTo31, kTwoTo31, 4};
  CHECK_THAT(refusal(dir.write("wrap", header(0x08, wraps_to_zero))),
             ContainsSubstring("dimensions"));
  const std::vector<uint32_t> hidden_by_zero = {0, kTwoTo31, kTwoTo31, kTwoTo31};
  CHECK_THAT(refusal(dir.write("zero", header(0x08, hidden_by_zero))),
             ContainsSubstring("dimensions"));
}

TEST_CASE("read_idx rejects a file that is shorter than its header says") {
  const TempDir dir;
  const std::string bytes = header(0x0B, {2, 3}) + std::string(11, 'x');
  const std::string message = ": payload: expected 12 bytes for shape [2, 3] of Short, found 11";
  CHECK(refusal(dir.write("plain", bytes)) == message);
  CHECK(refusal(dir.write("packed", gzip(bytes))) == message);
}

TEST_CASE("read_idx rejects a file that is longer than its header says") {
  const TempDir dir;
  const std::string bytes = header(0x0B, {2, 3}) + std::string(13, 'x');
  const std::string message = ": payload: expected 12 bytes for shape [2, 3] of Short, found more";
  CHECK(refusal(dir.write("plain", bytes)) == message);
  CHECK(refusal(dir.write("packed", gzip(bytes))) == message);
}

TEST_CASE("read_idx rejects a gzip stream that is truncated at any byte") {
  const TempDir dir;
  const std::string packed = gzip(header(0x08, {200}) + counting_bytes(200));
  for (size_t length = 2; length < packed.size(); ++length) {
    INFO("cut to " << length << " of " << packed.size() << " bytes");
    CHECK(refusal(dir.write("cut", packed.substr(0, length))) ==
          ": gzip stream: expected more data, found a truncated file");
  }
}

TEST_CASE(
    "read_idx reads a file that consists of several gzip streams and ignores trailing bytes") {
  const TempDir dir;
  const std::string bytes = header(0x08, {200}) + counting_bytes(200);
  const std::string packed = gzip(bytes.substr(0, 90)) + gzip("") + gzip(bytes.substr(90));
  for (const std::string surplus : {"", "\x1f", "surplus"}) {
    const torch::Tensor read = read_idx(dir.write("packed", packed + surplus));
    CHECK(torch::equal(read, torch::arange(200, torch::kByte)));
  }
  CHECK(refusal(dir.write("cut", packed + "\x1f\x8b")) ==
        ": gzip stream: expected more data, found a truncated file");
}

TEST_CASE("read_idx rejects a corrupted gzip stream and reports zlib's reason") {
  const TempDir dir;
  std::string packed = gzip(header(0x08, {200}) + counting_bytes(200));
  SECTION("a wrong checksum") {
    packed[packed.size() - 8] ^= 1;
    CHECK(refusal(dir.write("bad", packed)) ==
          ": gzip stream: expected valid data, found incorrect data check");
  }
  SECTION("an impossible block") {
    packed[10] = '\xff';
    CHECK_THAT(refusal(dir.write("bad", packed)),
               StartsWith(": gzip stream: expected valid data, found invalid "));
  }
}

TEST_CASE("read_idx rejects a header that claims 2^62 bytes") {
  const TempDir dir;
  const std::string bytes = header(0x08, {kTwoTo31, kTwoTo31}) + "few";
  const std::string message =
      ": payload: expected 4611686018427387904 bytes for shape [2147483648, 2147483648] of Byte, "
      "found a file that is too small";
  CHECK(refusal(dir.write("plain", bytes)) == message);
  CHECK(refusal(dir.write("packed", gzip(bytes))) == message);
}

TEST_CASE("read_idx allocates no memory for a header that claims 8 GiB", "[alone]") {
  const TempDir dir;
  const std::string bytes = header(0x08, {kTwoTo31, 4}) + "few";
  check_refused_without_memory(dir.write("plain", bytes));
  check_refused_without_memory(dir.write("packed", gzip(bytes)));
}

TEST_CASE("read_idx allocates no memory if a plain file is smaller than its header claims",
          "[alone]") {
  const TempDir dir;
  const std::string few = header(0x08, {1024, 1 << 20});  // a 1 MiB gzipped file can contain them
  check_refused_without_memory(dir.write("plain", few + std::string(2 * kMiB, 'x')));
}

TEST_CASE("read_idx rejects a tensor larger than max_bytes, and the error mentions the option") {
  const TempDir dir;
  const std::string bytes = header(0x0B, {1000}) + std::string(2000, '\0');
  for (const auto& file : {dir.write("plain", bytes), dir.write("packed", gzip(bytes))}) {
    CHECK(read_idx(file, {.max_bytes = 2000}).numel() == 1000);
    const std::string error = error_of([&] { read_idx(file, {.max_bytes = 1999}); });
    CHECK_THAT(error, ContainsSubstring("payload: expected at most 1999 bytes "
                                        "(IdxOptions::max_bytes), found shape [1000] of Short"));
    CHECK_THAT(error_of([&] { read_idx(file, file, {.max_bytes = 1999}); }),
               ContainsSubstring("IdxOptions::max_bytes"));
    CHECK_THAT(error_of([&] { read_idx(file, {.max_bytes = -1}); }),
               ContainsSubstring("max_bytes: expected at least 0, found -1"));
  }
}

TEST_CASE("read_idx allocates no memory for the excess data of a gzip bomb", "[alone]") {
  const TempDir dir;
  const fs::path bomb = dir.path() / "bomb";
  write_gzip_bomb(bomb, header(0x08, {10}), 256 * kMiB);
  const int64_t resident = peak_resident_bytes();
  const int64_t space = address_space_bytes("VmPeak");
  CHECK_THAT(refusal(bomb), ContainsSubstring("payload: expected 10 bytes"));
  CHECK(peak_resident_bytes() - resident < 64 * kMiB);
  CHECK(address_space_bytes("VmPeak") - space < 64 * kMiB);
}

TEST_CASE("read_idx stops at the first excess bytes of a gzip bomb") {
  const TempDir dir;
  const fs::path bomb = dir.path() / "bomb";
  write_gzip_bomb(bomb, header(0x08, {10}), 4 * kMiB);
  fs::resize_file(bomb, fs::file_size(bomb) - 1);
  CHECK_THAT(refusal(bomb), ContainsSubstring("found more"));
}

TEST_CASE("read_idx keeps only one copy of a file's contents in memory", "[alone]") {
  const TempDir dir;
  const uint32_t size = 256 * kMiB;
  const fs::path file = dir.write("large", header(0x08, {size}));
  fs::resize_file(file, fs::file_size(file) + size);
  const int64_t before = peak_resident_bytes();
  CHECK(read_idx(file).numel() == size);
  CHECK(peak_resident_bytes() - before < size + 64 * kMiB);
}

TEST_CASE("read_idx pairs images with labels and converts the labels to int64") {
  const TempDir dir;
  const fs::path images = dir.write("images", header(0x08, {3, 1, 2}) + counting_bytes(6));
  for (const auto& [type, payload] :
       std::vector<std::pair<uint8_t, std::string>>{{0x08, "\x02\x00\x01"s},
                                                    {0x09, "\x02\x00\x01"s},
                                                    {0x0B, "\0\x02\0\0\0\x01"s},
                                                    {0x0C, "\0\0\0\x02\0\0\0\0\0\0\0\x01"s}}) {
    const auto [data, target] = read_idx(images, dir.write("labels", header(type, {3}) + payload));
    CHECK(torch::equal(data, torch::arange(6, torch::kByte).reshape({3, 1, 2})));
    CHECK(target.scalar_type() == torch::kLong);
    CHECK(torch::equal(target, torch::tensor({2, 0, 1}, torch::kLong)));
  }
}

TEST_CASE("read_idx reads labels above 127 as positive numbers") {
  const TempDir dir;
  const fs::path file = dir.write("both", header(0x08, {1}) + "\xff");
  CHECK(read_idx(file, file).target.item<int64_t>() == 255);
}

TEST_CASE("read_idx pairs an empty image file with an empty label file") {
  const TempDir dir;
  const fs::path images = dir.write("images", header(0x08, {0, 28, 28}));
  const auto [data, target] = read_idx(images, dir.write("labels", header(0x08, {0})));
  CHECK(data.sizes() == std::vector<int64_t>{0, 28, 28});
  CHECK(target.sizes() == std::vector<int64_t>{0});
}

TEST_CASE("read_idx rejects images and labels that do not match") {
  const TempDir dir;
  const fs::path images = dir.write("images", header(0x08, {3, 1, 2}) + counting_bytes(6));
  const auto refused = [&](const std::string& labels) {
    const fs::path file = dir.write("labels", labels);
    return refusal(file, [&] { read_idx(images, file); });
  };
  SECTION("another number of labels") {
    CHECK(refused(header(0x08, {2}) + "\x01\x02") ==
          ": number of labels: expected 3 (the number of images in " + images.string() +
              "), found 2");
    CHECK_THAT(refused(header(0x08, {4}) + "\x01\x02\x03\x04"), ContainsSubstring("found 4"));
  }
  SECTION("a negative label") {
    CHECK(refused(header(0x09, {3}) + "\x01\xff\x02") ==
          ": labels: expected non-negative values, found -1 at index 1");
    CHECK_THAT(refused(header(0x0C, {3}) + std::string(8, '\0') + "\x80\0\0\0"s),
               ContainsSubstring("found -2147483648 at index 2"));
  }
  SECTION("labels that are no integers") {
    CHECK(refused(header(0x0D, {3}) + std::string(12, '\0')) ==
          ": type: expected an integer type for labels, found Float");
  }
  SECTION("swapped files") {
    const fs::path labels = dir.write("labels", header(0x08, {3}) + "\x01\x02\x03");
    CHECK(refusal(images, [&] { read_idx(labels, images); }) ==
          ": rank: expected 1 for labels, found 3 with shape [3, 1, 2] "
          "(are images and labels swapped?)");
  }
  SECTION("labels of rank 0") {
    CHECK(refused(header(0x08, {}) + "\x01") ==
          ": rank: expected 1 for labels, found 0 with shape []");
  }
  SECTION("images of rank 0") {
    const fs::path scalar = dir.write("scalar", header(0x08, {}) + "\x01");
    const fs::path labels = dir.write("labels", header(0x08, {1}) + "\x01");
    CHECK(refusal(scalar, [&] { read_idx(scalar, labels); }) ==
          ": rank: expected at least 1 for images, found 0");
  }
  SECTION("images that are missing") {
    const fs::path labels = dir.write("labels", header(0x08, {1}) + "\x01");
    CHECK_THAT(refusal(dir.path() / "no", [&] { read_idx(dir.path() / "no", labels); }),
               ContainsSubstring("No such file"));
  }
}

TEST_CASE("read_idx reads the digits dataset in the repository") {
  const fs::path digits = fs::path(SCONCE_TESTS_DIR) / "../apps/train/digits";
  const auto [data, target] =
      read_idx(digits / "train-images-idx3-ubyte", digits / "train-labels-idx1-ubyte");
  CHECK(data.sizes() == std::vector<int64_t>{1437, 8, 8});
  CHECK(data.max().item<int>() == 16);
  CHECK(torch::equal(target.slice(0, 0, 8), torch::tensor({1, 2, 3, 4, 6, 7, 8, 9})));
  const auto test = read_idx(digits / "t10k-images-idx3-ubyte", digits / "t10k-labels-idx1-ubyte");
  CHECK(test.data.sizes() == std::vector<int64_t>{360, 8, 8});
  CHECK(torch::equal(test.target.bincount(),
                     torch::tensor({42, 28, 26, 48, 38, 39, 30, 26, 36, 47})));
}
