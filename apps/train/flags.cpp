#include "flags.hpp"

#include <charconv>
#include <filesystem>
#include <limits>
#include <type_traits>
#include <utility>

#include "models.hpp"
#include "optimization.hpp"
#include "sconce/devices.hpp"
#include "training_data.hpp"
#include "validators.hpp"

namespace train {

namespace {

using apps::number;
using apps::one_of;
using apps::whole_number;

constexpr uint64_t int_max = std::numeric_limits<int>::max();
constexpr uint64_t int64_max = std::numeric_limits<int64_t>::max();

CLI::Validator device_name() {
  return CLI::Validator(
      [](std::string& text) {
        int index = -1;
        const bool is_index = text.rfind("cuda:", 0) == 0 && apps::parse(text.substr(5), index);
        if (text == "auto" || text == "cpu") return std::string();
        if (is_index && index >= 0 && index < sconce::num_gpus() &&
            text == "cuda:" + std::to_string(index)) {
          return std::string();
        }
        return "must be auto, cpu, or cuda:N, where N is less than the number of GPUs (" +
               std::to_string(sconce::num_gpus()) + "), not '" + text + "'";
      },
      "");
}

CLI::Validator data_name() {
  return CLI::Validator(
      [](std::string& text) {
        if (is_named(text) || std::filesystem::is_directory(text) || is_table(text)) {
          return std::string();
        }
        return "must be digits, fashion-mnist, a folder of IDX files or images, or a CSV file, " +
               ("not '" + text + "'");
      },
      "");
}

std::string choice_of(const std::vector<std::string>& names) {
  return CLI::detail::join(names, "|");
}

template <class T>
CLI::Option* add_option(CLI::App& app, const Flag& flag, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return app.add_flag(flag.name, value, flag.help);
  } else {
    CLI::Option* option = app.add_option(flag.name, value, flag.help);
    option->transform(flag.check)->type_name(flag.takes)->allow_extra_args(false);
    if (std::is_same_v<T, std::filesystem::path> || !flag.default_text.empty()) {
      option->default_str(flag.default_text);  // CLI11 would show the empty path as ""
    }
    return option;
  }
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "yes" : "no";
  if constexpr (std::is_same_v<T, std::filesystem::path>) return value.empty() ? "no" : "yes";
  if constexpr (std::is_same_v<T, std::string>) return value.empty() ? "no" : value;
  if constexpr (std::is_floating_point_v<T>) return shortest_text(value);
  if constexpr (std::is_integral_v<T>) return std::to_string(value);
  return {};  // values of other types are not saved
}

template <class Member>
BoundFlag bind(const std::string& group, const Flag& flag, Member member) {
  const auto add = [=](CLI::App& app, CommandLine& line) {
    return add_option(app, flag, member(line));
  };
  const auto text = [=](const CommandLine& line) { return text_of(member(line)); };
  return {flag, group, add, text};
}

}  // namespace

const std::vector<BoundFlag>& flags() {
  static const std::vector<BoundFlag> all = [] {
    std::vector<BoundFlag> made;
    std::string group;
#define GROUP(title) group = title;
#define FLAG(type, member, value, ...) FLAG_OF(member, __VA_ARGS__)
#define FLAG_OF(member, ...) \
  made.push_back(bind(group, {__VA_ARGS__}, [](auto& line) -> auto& { return line.member; }));
#include "flags.inc"
#undef FLAG_OF
#undef FLAG
#undef GROUP
    return made;
  }();
  return all;
}

CLI::Validator path_of(const std::string& what) {
  return CLI::Validator(
      [=](std::string& text) {
        return text.empty() ? "must be " + what + ", not ''" : std::string();
      },
      "");
}

std::string shortest_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace train
