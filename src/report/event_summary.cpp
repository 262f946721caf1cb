#include "report/event_summary.hpp"

#include <bit>
#include <cstdint>

#include "io/png_writer.hpp"
#include "report/protobuf.hpp"

// The field numbers come from TensorBoard's summary.proto, tensor.proto, and histogram.proto, and
// from api.proto and plugin_data.proto in TensorBoard's hparams plugin.
namespace sconce::utils::tensorboard {

namespace {

using protobuf::bytes_field;
using protobuf::double_field;
using protobuf::varint_field;

constexpr uint64_t type_of_strings = 7;  // in types.proto
constexpr uint64_t session_success = 1;

// Returns field 5 of an event. `value` contains the fields that follow the tag.
std::string summary(const std::string& tag, const std::string& value) {
  return bytes_field(5, bytes_field(1, bytes_field(1, tag) + value));
}

std::string metadata(const std::string& plugin, const std::string& content) {
  const std::string field = content.empty() ? "" : bytes_field(2, content);
  return bytes_field(9, bytes_field(1, bytes_field(1, plugin) + field));
}

std::string number_field(uint64_t number, double value) {
  return std::bit_cast<uint64_t>(value) == 0 ? "" : double_field(number, value);
}

bool is_text(const HParam& value) {
  return std::holds_alternative<std::string>(value);
}

double number_of(const HParam& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::get<double>(value);
}

std::string value_of(const HParam& value) {
  return is_text(value) ? bytes_field(3, std::get<std::string>(value))
                        : double_field(2, number_of(value));
}

std::string list_of(const std::vector<HParam>& values) {
  std::string list;
  for (const auto& value : values) list += bytes_field(1, value_of(value));
  return list;
}

}  // namespace

std::string scalar(const std::string& tag, float value) {
  return summary(tag, protobuf::float_field(2, value));
}

std::string image(const std::string& tag, const at::Tensor& pixels) {
  std::string fields;
  for (int64_t i = 0; i < 3; ++i) {
    fields += varint_field(static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(pixels.size(i)));
  }
  return summary(tag, bytes_field(4, fields + bytes_field(4, io::png_file(pixels))));
}

std::string histogram(const std::string& tag, const RawHistogram& counted) {
  const std::string fields = number_field(1, counted.min) + number_field(2, counted.max) +
                             number_field(3, counted.num) + number_field(4, counted.sum) +
                             number_field(5, counted.sum_squares) +
                             protobuf::packed_field(6, counted.bucket_limits) +
                             protobuf::packed_field(7, counted.bucket_counts);
  return summary(tag, bytes_field(5, fields));
}

std::string text(const std::string& tag, const std::string& markdown) {
  const std::string shape = bytes_field(2, bytes_field(2, varint_field(1, 1)));
  const std::string tensor = varint_field(1, type_of_strings) + shape + bytes_field(8, markdown);
  return summary(tag + "/text_summary", bytes_field(8, tensor) + metadata("text", ""));
}

std::array<std::string, 3> hparams(const HParams& values,
                                   const std::vector<std::pair<std::string, double>>& metrics,
                                   const std::map<std::string, std::vector<HParam>>& domains) {
  std::string experiment;
  std::string start;
  for (const auto& [name, value] : values) {
    const auto domain = domains.find(name);
    constexpr uint64_t type_of_text = 1, type_of_number = 3;
    experiment += bytes_field(
        4, bytes_field(1, name) + varint_field(4, is_text(value) ? type_of_text : type_of_number) +
               (domain == domains.end() ? "" : bytes_field(5, list_of(domain->second))));
    start += bytes_field(1, bytes_field(1, name) + bytes_field(2, value_of(value)));
  }
  for (const auto& metric : metrics) {
    experiment += bytes_field(5, bytes_field(1, bytes_field(2, metric.first)));
  }
  const auto content = [](const char* tag, uint64_t number, const std::string& message) {
    return summary(std::string("_hparams_/") + tag,
                   metadata("hparams", bytes_field(number, message)));
  };
  return {content("experiment", 2, experiment), content("session_start_info", 3, start),
          content("session_end_info", 4, varint_field(1, session_success))};
}

}  // namespace sconce::utils::tensorboard
