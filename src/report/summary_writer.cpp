#include "sconce/report/summary_writer.hpp"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <string_view>

#include "detail/format.hpp"
#include "io/utf8.hpp"
#include "report/append_file.hpp"

namespace sconce::utils::tensorboard {

namespace {

constexpr auto who = "sconce::utils::tensorboard::SummaryWriter";
constexpr std::string_view prefix = "events.out.tfevents.";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The table of CRC-32C (Castagnoli), which neither LibTorch nor zlib has.
constexpr auto crc_table = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
    table[byte] = crc;
  }
  return table;
}();

// TFRecord files store the CRC in this masked form.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = crc >> 8 ^ crc_table[(crc ^ static_cast<uint8_t>(byte)) & 255];
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

// Returns the bytes in little-endian order on every machine.
std::string fixed(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

// A protobuf message is a sequence of fields. The key of a field has its number and its wire type.
std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  return text + static_cast<char>(value);
}

std::string varint_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string double_field(uint64_t number, double value) {
  return varint(number << 3 | 1) + fixed(std::bit_cast<uint64_t>(value), 8);
}

std::string bytes_field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string float_field(uint64_t number, float value) {
  return varint(number << 3 | 5) + fixed(std::bit_cast<uint32_t>(value), 4);
}

std::string record(const std::string& data) {
  const std::string length = fixed(data.size(), 8);
  return length + fixed(masked_crc(length), 4) + data + fixed(masked_crc(data), 4);
}

// The field numbers are those of TensorBoard's event.proto and summary.proto. Step 0 is the default
// and is left out.
std::string event(double wall_time, int64_t step, const std::string& content) {
  const std::string of_step = step == 0 ? "" : varint_field(2, static_cast<uint64_t>(step));
  return record(double_field(1, wall_time) + of_step + content);
}

std::string file_version() {
  return bytes_field(3, "brain.Event:2");
}

std::string session_start() {
  return bytes_field(7, varint_field(1, 1));
}

std::string scalar(const std::string& tag, float value) {
  return bytes_field(5, bytes_field(1, bytes_field(1, tag) + float_field(2, value)));
}

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// The result is later than all files in the folder, even if the process restarted within a second
// or the clock was set back.
int64_t seconds_for_name(const std::filesystem::path& folder) {
  auto seconds = static_cast<int64_t>(now());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    int64_t earlier = 0;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), earlier);
    seconds = std::max(seconds, earlier + 1);
  }
  return seconds;
}

std::filesystem::path new_file(const std::filesystem::path& folder) {
  static std::atomic<int> files = 0;
  const auto seconds = format("%010lld", static_cast<long long>(seconds_for_name(folder)));
  return folder / (std::string(prefix) + seconds + "." + host_name() + "." +
                   std::to_string(::getpid()) + "." + std::to_string(files++));
}

}  // namespace

SummaryWriter::SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options)
    : log_dir_(std::move(log_dir)), pending_(event(now(), 0, file_version())) {
  if (options.purge_step) pending_ += event(now(), *options.purge_step, session_start());
}

SummaryWriter::~SummaryWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // a destructor must not throw
  }
}

void SummaryWriter::add_scalar(const std::string& tag, double scalar_value, int64_t global_step,
                               AddScalarOptions options) {
  TORCH_CHECK(io::is_utf8(tag), who, "::add_scalar: expected a tag in UTF-8, got other bytes");
  pending_ += event(options.walltime.value_or(now()), global_step,
                    scalar(tag, static_cast<float>(scalar_value)));
}

void SummaryWriter::flush() {
  if (pending_.empty()) return;
  if (!file_) {
    std::error_code error;
    std::filesystem::create_directories(log_dir_, error);
    TORCH_CHECK(!error, who, ": ", log_dir_.string(),
                ": cannot make the folder: ", error.message());
    file_ = std::make_unique<AppendFile>(new_file(log_dir_), who);
  }
  file_->append(pending_);
  pending_.clear();
}

}  // namespace sconce::utils::tensorboard
