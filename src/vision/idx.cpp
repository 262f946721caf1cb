#include "sconce/vision/idx.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/input_file.hpp"

namespace sconce::vision {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{64} * 1024;
constexpr int64_t kMaxRank = 255;
constexpr int64_t kMagicBytes = 4;
constexpr int64_t kDimensionBytes = 4;

// The prefix of each error message, followed by "expected ..., found ...".
std::string at_field(const fs::path& file, std::string_view field) {
  return c10::str("sconce::vision::read_idx: ", file.string(), ": ", field, ": ");
}

// The contents of a file, decompressed if it is gzipped. This class calls inflate directly, because
// gzread reports different errors for damaged files in different zlib versions. For example,
// version 1.3.2 treats a file with an invalid first block as empty.
class Content {
 public:
  explicit Content(const fs::path& file) : file_(file), input_(file, "sconce::vision::read_idx") {
    stream_.next_in = buffer_.data();
    fill();
    gzipped_ = has_magic();
    if (!gzipped_) return;
    constexpr int kGzipFormat = MAX_WBITS + 16;
    check_memory(inflateInit2(&stream_, kGzipFormat));
    in_member_ = true;
  }
  ~Content() {
    if (gzipped_) inflateEnd(&stream_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  const fs::path& file() const { return file_; }

  // Returns whether the file can contain the given number of bytes. One byte in a gzip stream
  // expands to at most 1032 bytes.
  bool can_hold(int64_t bytes) const {
    return bytes / (gzipped_ ? 1032 : 1) <= static_cast<int64_t>(input_.size());
  }

  // Reads `count` bytes, or all remaining bytes if fewer than `count` remain. A gzip stream ends
  // after its checksum, so reading past the payload verifies the payload.
  int64_t read(void* to, int64_t count) {
    auto* bytes = static_cast<Bytef*>(to);
    if (gzipped_) return unpack(bytes, count);
    const auto left = static_cast<int64_t>(input_.size()) - plain_offset_;
    const int64_t size = std::min(count, left);
    input_.read(static_cast<uint64_t>(plain_offset_), bytes, static_cast<uint64_t>(size));
    plain_offset_ += size;
    return size;
  }

 private:
  int64_t unpack(Bytef* to, int64_t count) {
    constexpr int64_t kMostAtOnce = int64_t{1} << 30;  // zlib counts in 32 bits
    int64_t done = 0;
    while (done < count && (in_member_ || start_next_member())) {
      if (stream_.avail_in == 0) fill();
      const auto room = static_cast<uInt>(std::min(count - done, kMostAtOnce));
      stream_.next_out = to + done;
      stream_.avail_out = room;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      check(code);
      done += room - stream_.avail_out;
      in_member_ = code != Z_STREAM_END;
    }
    return done;
  }

  // A gzipped file may consist of several streams. Like gzip, this class ignores trailing bytes
  // that are not a gzip stream.
  bool start_next_member() {
    if (stream_.avail_in < kMagic.size()) fill();
    in_member_ = has_magic();
    if (in_member_) check_memory(inflateReset(&stream_));
    return in_member_;
  }

  bool has_magic() const {
    return stream_.avail_in >= kMagic.size() &&
           std::equal(kMagic.begin(), kMagic.end(), stream_.next_in);
  }

  // Moves the unread bytes to the front of the buffer, and appends the next bytes from the file.
  void fill() {
    std::copy_n(stream_.next_in, stream_.avail_in, buffer_.begin());
    const uint64_t room = buffer_.size() - stream_.avail_in;
    const uint64_t size = std::min<uint64_t>(room, input_.size() - packed_offset_);
    input_.read(packed_offset_, buffer_.data() + stream_.avail_in, size);
    packed_offset_ += size;
    stream_.next_in = buffer_.data();
    stream_.avail_in += static_cast<uInt>(size);
  }

  void check_memory(int code) const {
    TORCH_CHECK(code == Z_OK, at_field(file_, "file"),
                "expected enough memory to read the file, found too little memory");
  }

  void check(int code) const {
    if (code == Z_MEM_ERROR) check_memory(code);
    TORCH_CHECK(code != Z_BUF_ERROR, at_field(file_, "gzip stream"),
                "expected more data, found a truncated file");
    TORCH_CHECK(code == Z_OK || code == Z_STREAM_END, at_field(file_, "gzip stream"),
                "expected valid data, found ", stream_.msg == nullptr ? "an error" : stream_.msg);
  }

  static constexpr std::array<Bytef, 2> kMagic = {0x1f, 0x8b};

  fs::path file_;
  io::InputFile input_;
  bool gzipped_ = false;
  bool in_member_ = false;
  int64_t plain_offset_ = 0;
  uint64_t packed_offset_ = 0;
  std::vector<Bytef> buffer_ = std::vector<Bytef>(kBufferBytes);
  z_stream stream_ = {};
};

struct Header {
  torch::ScalarType type = c10::kByte;
  std::vector<int64_t> sizes = {};
  int64_t payload_bytes = 0;
};

std::string hex(unsigned value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[value / 16 % 16], kDigits[value % 16]};
}

torch::ScalarType type_of(const Content& content, uint8_t code) {
  switch (code) {
    case 0x08:
      return c10::kByte;
    case 0x09:
      return c10::kChar;
    case 0x0B:
      return c10::kShort;
    case 0x0C:
      return c10::kInt;
    case 0x0D:
      return c10::kFloat;
    case 0x0E:
      return c10::kDouble;
    default:
      TORCH_CHECK(false, at_field(content.file(), "type"),
                  "expected one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e, found ", hex(code));
  }
}

template <class Word>
Word from_big_endian(const unsigned char* bytes) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) word = static_cast<Word>(word << 8 | bytes[i]);
  return word;
}

int64_t payload_bytes(const Content& content, const Header& header) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  auto bytes = static_cast<int64_t>(c10::elementSize(header.type));
  for (const int64_t size : header.sizes) {
    // A size of zero is treated as one here, so that the strides of the other dimensions cannot
    // overflow.
    const int64_t factor = std::max<int64_t>(size, 1);
    TORCH_CHECK(bytes <= kMax / factor, at_field(content.file(), "dimensions"), "expected at most ",
                kMax, " bytes of payload, found shape ", at::IntArrayRef(header.sizes), " of ",
                header.type);
    bytes *= factor;
  }
  const bool empty = std::find(header.sizes.begin(), header.sizes.end(), 0) != header.sizes.end();
  return empty ? 0 : bytes;
}

Header read_header(Content& content) {
  std::array<unsigned char, kMagicBytes> magic{};
  const int64_t magic_found = content.read(magic.data(), kMagicBytes);
  TORCH_CHECK(magic_found == kMagicBytes, at_field(content.file(), "magic number"), "expected ",
              kMagicBytes, " bytes, found ", magic_found);
  TORCH_CHECK(magic[0] == 0 && magic[1] == 0, at_field(content.file(), "magic number"),
              "expected 0x00 0x00 first, found ", hex(magic[0]), " ", hex(magic[1]));

  Header header;
  header.type = type_of(content, magic[2]);
  const int64_t rank = magic[3];
  std::array<unsigned char, kMaxRank * kDimensionBytes> dimensions{};
  const int64_t found = content.read(dimensions.data(), rank * kDimensionBytes);
  TORCH_CHECK(found == rank * kDimensionBytes, at_field(content.file(), "dimensions"), "expected ",
              rank * kDimensionBytes, " bytes for rank ", rank, ", found ", found);
  for (int64_t i = 0; i < rank; ++i) {
    header.sizes.push_back(from_big_endian<uint32_t>(dimensions.data() + i * kDimensionBytes));
  }
  header.payload_bytes = payload_bytes(content, header);
  return header;
}

template <class Word>
void to_native_order(unsigned char* bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i, bytes += sizeof(Word)) {
    const Word word = from_big_endian<Word>(bytes);
    std::memcpy(bytes, &word, sizeof(Word));
  }
}

void to_native_order(torch::Tensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  switch (tensor.element_size()) {
    case 2:
      return to_native_order<uint16_t>(bytes, tensor.numel());
    case 4:
      return to_native_order<uint32_t>(bytes, tensor.numel());
    case 8:
      return to_native_order<uint64_t>(bytes, tensor.numel());
    default:
      return;
  }
}

void check_labels(const fs::path& file, const torch::Tensor& labels) {
  TORCH_CHECK(labels.dim() == 1, at_field(file, "rank"), "expected 1 for labels, found ",
              labels.dim(), " with shape ", labels.sizes(),
              labels.dim() == 3 ? " (are images and labels swapped?)" : "");
  TORCH_CHECK(c10::isIntegralType(labels.scalar_type(), /*includeBool=*/false),
              at_field(file, "type"), "expected an integer type for labels, found ",
              labels.scalar_type());
}

void check_not_negative(const fs::path& file, const torch::Tensor& target) {
  const auto* first = target.const_data_ptr<int64_t>();
  const auto* last = first + target.numel();
  const auto* bad = std::find_if(first, last, [](int64_t label) { return label < 0; });
  TORCH_CHECK(bad == last, at_field(file, "labels"), "expected non-negative values, found ", *bad,
              " at index ", bad - first);
}

}  // namespace

torch::Tensor read_idx(const fs::path& file, const IdxOptions& options) {
  TORCH_CHECK(!options.max_bytes || *options.max_bytes >= 0, at_field(file, "max_bytes"),
              "expected at least 0, found ", options.max_bytes.value_or(0));
  Content content(file);
  const Header header = read_header(content);
  const auto expect = [&](bool fits, const std::string& found) {
    TORCH_CHECK(fits, at_field(file, "payload"), "expected ", header.payload_bytes,
                " bytes for shape ", at::IntArrayRef(header.sizes), " of ", header.type, ", found ",
                found);
  };
  // Checks the file size first, so that an invalid header does not cause a large allocation.
  expect(content.can_hold(header.payload_bytes), "a file that is too small");
  TORCH_CHECK(!options.max_bytes || header.payload_bytes <= *options.max_bytes,
              at_field(file, "payload"), "expected at most ", *options.max_bytes,
              " bytes (IdxOptions::max_bytes), found shape ", at::IntArrayRef(header.sizes), " of ",
              header.type);

  torch::Tensor tensor = at::empty(header.sizes, header.type);
  const int64_t found = content.read(tensor.mutable_data_ptr(), header.payload_bytes);
  expect(found == header.payload_bytes, std::to_string(found));
  char surplus = 0;
  expect(content.read(&surplus, 1) == 0, "more");
  to_native_order(tensor);
  return tensor;
}

data::Dataset read_idx(const fs::path& images, const fs::path& labels, const IdxOptions& options) {
  const torch::Tensor raw = read_idx(labels, options);
  check_labels(labels, raw);
  torch::Tensor target = raw.to(c10::kLong);
  check_not_negative(labels, target);

  torch::Tensor data = read_idx(images, options);
  TORCH_CHECK(data.dim() >= 1, at_field(images, "rank"), "expected at least 1 for images, found 0");
  TORCH_CHECK(target.size(0) == data.size(0), at_field(labels, "number of labels"), "expected ",
              data.size(0), " (the number of images in ", images.string(), "), found ",
              target.size(0));
  return {.data = std::move(data), .target = std::move(target)};
}

}  // namespace sconce::vision
