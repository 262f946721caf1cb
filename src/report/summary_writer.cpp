#include "sconce/report/summary_writer.hpp"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>

#include "check_path.hpp"
#include "host_call.hpp"
#include "io/folder_names.hpp"
#include "io/utf8.hpp"
#include "report/append_file.hpp"
#include "report/event_histogram.hpp"
#include "report/event_image.hpp"
#include "report/event_summary.hpp"
#include "report/protobuf.hpp"
#include "repr/format.hpp"

namespace sconce::utils::tensorboard {

namespace {

using protobuf::bytes_field;
using protobuf::fixed;
using protobuf::varint_field;

constexpr auto caller = "sconce::utils::tensorboard::SummaryWriter";
constexpr std::string_view prefix = "events.out.tfevents.";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The lookup table for CRC-32C (Castagnoli), which neither LibTorch nor zlib provides.
constexpr auto crc_table = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
    table[byte] = crc;
  }
  return table;
}();

// Returns the masked form of the CRC that TFRecord files store.
uint32_t masked_crc(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = crc >> 8 ^ crc_table[(crc ^ static_cast<uint8_t>(byte)) & 255];
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

std::string record(const std::string& data) {
  const std::string length = fixed(data.size(), 8);
  return length + fixed(masked_crc(length), 4) + data + fixed(masked_crc(data), 4);
}

// The field numbers come from TensorBoard's event.proto. Step 0 is the default and is omitted.
std::string event(double wall_time, int64_t step, const std::string& content) {
  const std::string step_field = step == 0 ? "" : varint_field(2, static_cast<uint64_t>(step));
  return record(protobuf::double_field(1, wall_time) + step_field + content);
}

std::string file_version() {
  return bytes_field(3, "brain.Event:2");
}

std::string session_start() {
  return bytes_field(7, varint_field(1, 1));
}

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// Returns a time that is later than the time of every file in the folder, even if the process
// restarted within a second or the clock was set back.
int64_t seconds_for_name(const std::filesystem::path& folder) {
  auto seconds = static_cast<int64_t>(now());
  std::error_code error;
  for (const auto& name : detail::folder_names(folder, error)) {
    int64_t earlier = 0;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), earlier);
    seconds = std::max(seconds, earlier + 1);
  }
  TORCH_CHECK(!error, "SummaryWriter: ", folder.string(),
              ": cannot read the folder: ", error.message());
  return seconds;
}

std::filesystem::path new_file(const std::filesystem::path& folder) {
  static std::atomic<int> files = 0;
  const auto seconds = format("%010lld", static_cast<long long>(seconds_for_name(folder)));
  return folder / (std::string(prefix) + seconds + "." + host_name() + "." +
                   std::to_string(::getpid()) + "." + std::to_string(files++));
}

std::string name_of(const char* function) {
  return std::string(caller) + "::" + function;
}

void check_tag(const std::string& function, const std::string& tag) {
  TORCH_CHECK(io::is_utf8(tag), function, ": expected a tag in UTF-8, got invalid UTF-8");
}

void check_text(const std::string& function, const std::string& name, const HParam& value) {
  const auto* text = std::get_if<std::string>(&value);
  TORCH_CHECK(!text || io::is_utf8(*text), function, ": ", name,
              ": expected text in UTF-8, got invalid UTF-8");
}

void check_hparams(const std::string& function, const HParams& hparams,
                   const std::map<std::string, std::vector<HParam>>& domains) {
  std::map<std::string, size_t> types;
  for (const auto& [name, value] : hparams) {
    check_tag(function, name);
    TORCH_CHECK(types.emplace(name, value.index()).second, function,
                ": expected each hyperparameter once, got ", name, " twice");
    check_text(function, name, value);
  }
  for (const auto& [name, values] : domains) {
    const auto type = types.find(name);
    TORCH_CHECK(type != types.end(), function, ": hparam_domain_discrete: ", name,
                ": expected a hyperparameter name");
    for (const auto& value : values) {
      TORCH_CHECK(value.index() == type->second, function, ": hparam_domain_discrete: ", name,
                  ": expected values of the hyperparameter's type, got a different type");
      check_text(function, name, value);
    }
  }
}

}  // namespace

SummaryWriter::SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options)
    : log_dir_(std::move(log_dir)), pending_(event(now(), 0, file_version())) {
  check_path(log_dir_, caller);
  if (options.purge_step) pending_ += event(now(), *options.purge_step, session_start());
}

SummaryWriter::~SummaryWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // a destructor must not throw
  }
}

void SummaryWriter::keep(int64_t global_step, std::optional<double> walltime,
                         const std::string& summary) {
  detail::check_not_capturing("sconce::utils::tensorboard::SummaryWriter::add_...");
  const std::string kept = event(walltime.value_or(now()), global_step, summary);
  if (!file_ && pending_.empty()) pending_ = event(now(), 0, file_version());
  pending_ += kept;
}

void SummaryWriter::add_scalar(const std::string& tag, double scalar_value, int64_t global_step,
                               AddScalarOptions options) {
  check_tag(name_of("add_scalar"), tag);
  keep(global_step, options.walltime, scalar(tag, static_cast<float>(scalar_value)));
}

void SummaryWriter::add_image(const std::string& tag, const torch::Tensor& img_tensor,
                              int64_t global_step, const AddImageOptions& options) {
  const std::string function = name_of("add_image");
  check_tag(function, tag);
  keep(global_step, options.walltime,
       image(tag, image_pixels(function, img_tensor, options.dataformats)));
}

void SummaryWriter::add_images(const std::string& tag, const torch::Tensor& img_tensor,
                               int64_t global_step, const AddImagesOptions& options) {
  const std::string function = name_of("add_images");
  check_tag(function, tag);
  keep(global_step, options.walltime,
       image(tag, image_pixels(function, img_tensor, options.dataformats)));
}

void SummaryWriter::add_histogram(const std::string& tag, const torch::Tensor& values,
                                  int64_t global_step, const AddHistogramOptions& options) {
  const std::string function = name_of("add_histogram");
  check_tag(function, tag);
  keep(global_step, options.walltime, histogram(tag, make_histogram(function, values, options)));
}

void SummaryWriter::add_histogram_raw(const std::string& tag, const RawHistogram& raw,
                                      int64_t global_step, AddHistogramRawOptions options) {
  const std::string function = name_of("add_histogram_raw");
  check_tag(function, tag);
  TORCH_CHECK(raw.bucket_limits.size() == raw.bucket_counts.size(), function,
              ": expected as many bucket_limits as bucket_counts, got ", raw.bucket_limits.size(),
              " and ", raw.bucket_counts.size());
  keep(global_step, options.walltime, histogram(tag, raw));
}

void SummaryWriter::add_text(const std::string& tag, const std::string& text_string,
                             int64_t global_step, AddTextOptions options) {
  const std::string function = name_of("add_text");
  check_tag(function, tag);
  TORCH_CHECK(io::is_utf8(text_string), function, ": expected text in UTF-8, got invalid UTF-8");
  keep(global_step, options.walltime, text(tag, text_string));
}

void SummaryWriter::add_hparams(const HParams& hparam_dict,
                                const std::vector<std::pair<std::string, double>>& metric_dict,
                                const AddHParamsOptions& options) {
  const std::string function = name_of("add_hparams");
  check_hparams(function, hparam_dict, options.hparam_domain_discrete);
  std::set<std::string> metrics;
  for (const auto& metric : metric_dict) {
    check_tag(function, metric.first);
    TORCH_CHECK(metrics.insert(metric.first).second, function, ": expected each metric once, got ",
                metric.first, " twice");
  }
  SummaryWriter run(log_dir_ / (options.run_name.empty()
                                    ? format(now(), std::chars_format::fixed, 6)
                                    : options.run_name));
  for (const auto& summary : hparams(hparam_dict, metric_dict, options.hparam_domain_discrete)) {
    run.keep(options.global_step, {}, summary);
  }
  for (const auto& [tag, value] : metric_dict) run.add_scalar(tag, value, options.global_step);
  run.flush();
}

void SummaryWriter::flush() {
  detail::check_not_capturing("sconce::utils::tensorboard::SummaryWriter::flush");
  if (pending_.empty()) return;
  if (!file_) {
    std::error_code error;
    std::filesystem::create_directories(log_dir_, error);
    TORCH_CHECK(!error, caller, ": ", log_dir_.string(),
                ": cannot create the folder: ", error.message());
    file_ = std::make_unique<AppendFile>(new_file(log_dir_), caller);
  }
  file_->append(pending_);
  pending_.clear();
}

void SummaryWriter::close() {
  flush();
  file_.reset();
}

}  // namespace sconce::utils::tensorboard
