#include "command_line.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "arguments.hpp"
#include "flag_rules.hpp"
#include "flags.hpp"
#include "models.hpp"
#include "optimization.hpp"
#include "training_data.hpp"

namespace train {

namespace {

using sconce::amp::Precision;

const std::pair<std::string, Precision> precisions[] = {{"fp32", Precision::fp32},
                                                        {"tf32", Precision::tf32},
                                                        {"bf16", Precision::bf16},
                                                        {"fp16", Precision::fp16}};

// Appends each option's default to its description. CLI11 would print the default next to the type,
// and a text such as DIR=digits would look like syntax.
void describe_defaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_size() == 0 || option->get_default_str().empty()) continue;
    option->description(option->get_description() + " (default: " + option->get_default_str() +
                        ")");
    option->default_str("");
  }
}

void add_flags(CLI::App& app, CommandLine& line) {
  app.option_defaults()->always_capture_default();
  for (const auto& flag : flags()) flag.add(app, line)->group(flag.group);
  describe_defaults(app);
}

CLI::App* add_predict(CLI::App& app, CommandLine& line, PredictLine& predict) {
  CLI::App* command = app.add_subcommand(
      "predict",
      "Predict image classes or row targets with the weights or the exported program of a run");
  command
      ->add_option("--weights", predict.weights,
                   "The model.safetensors file from an --out folder, or a file written by --export")
      ->required()
      ->check(path_of("a file"))
      ->type_name("FILE");
  for (const auto& flag : flags()) {
    if (flag.is_for_predict) flag.add(*command, line);
  }
  command->add_option("INPUT", predict.files, "PNG, JPEG, or CSV files")->required()->type_name("");
  return command;
}

}  // namespace

torch::Device CommandLine::torch_device(const sconce::distributed::ProcessGroup& group) const {
  return device == "auto" ? group.device() : torch::Device(device);
}

Precision CommandLine::amp_precision() const {
  const auto named = std::find_if(std::begin(precisions), std::end(precisions),
                                  [&](const auto& entry) { return entry.first == precision; });
  return named->second;
}

double CommandLine::learning_rate() const {
  return lr.value_or(default_lr(optimizer));
}

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> listed;
    for (const auto& entry : precisions) listed.push_back(entry.first);
    return listed;
  }();
  return names;
}

void refuse(const std::string& what) {
  throw UsageError(what.substr(0, what.find('\n')) + " (--help lists the flags)");
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app("Trains on images or a table and reports loss, metrics, and speed.", "sconce-train");
  add_flags(app, line);
  PredictLine predict;
  const CLI::App* command = add_predict(app, line, predict);
  line.help = apps::parse_arguments(app, argc, argv);
  if (!line.help.empty()) return line;
  if (command->parsed()) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() > 0) refuse(option->get_name() + ": cannot be used with predict");
    }
    predict.limits = line.limits;
    line.predict = predict;
    return line;
  }
  if (is_vision_model(line.model) && app.count("--image-size") == 0) line.image_size = 224;
  if (is_table(line.data) && app.count("--model") == 0) line.model = "mlp";
  check_flag_rules(app, line);
  return line;
}

std::string with_flags(std::string error) {
  const std::pair<std::string, std::string> flags[] = {
      {"(max_bytes)", "(--max-csv-bytes)"}, {"(ImageLimits::max_pixels)", "(--max-pixels)"}};
  for (const auto& [option, flag] : flags) {
    const size_t place = error.find(option);
    if (place != error.npos) error.replace(place, option.size(), flag);
  }
  return error;
}

}  // namespace train
