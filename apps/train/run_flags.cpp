#include "run_flags.hpp"

#include <charconv>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "optimization.hpp"
#include "sconce/io/whole_file.hpp"

namespace train {

namespace {

// Returns the shortest text that reads back as the same number, such as "2" and "0.1".
std::string shortest_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::vector<std::pair<std::string, std::string>> run_flags(const CommandLine& line) {
  return {{"--target", line.target.empty() ? "no" : line.target},
          {"--image-size", std::to_string(line.image_size)},
          {"--grey", line.grey ? "yes" : "no"},
          {"--test-fraction", shortest_text(line.test_fraction)},
          {"--augment", line.augment ? "yes" : "no"},
          {"--skip-bad", line.skip_bad ? "yes" : "no"},
          {"--model", line.model},
          {"--weights", line.weights.empty() ? "no" : "yes"},
          {"--freeze", line.freeze ? "yes" : "no"},
          {"--batch-size", std::to_string(line.batch_size)},
          {"--optimizer", line.optimizer},
          {"--lr", shortest_text(line.lr.value_or(default_lr(line.optimizer)))},
          {"--scheduler", line.scheduler},
          {"--precision", line.precision_name},
          {"--clip", shortest_text(line.clip)},
          {"--accumulate", std::to_string(line.accumulate)},
          {"--ema", shortest_text(line.ema)},
          {"--seed", std::to_string(line.seed)}};
}

}  // namespace

std::filesystem::path run_flags_file(const CommandLine& line) {
  return line.checkpoint / "flags.txt";
}

void write_run_flags(const CommandLine& line) {
  std::string text;
  for (const auto& [flag, value] : run_flags(line)) text += flag + ' ' + value + '\n';
  sconce::io::write_whole(run_flags_file(line), text, "--checkpoint");
}

void check_run_flags(const CommandLine& line) {
  std::ifstream file(run_flags_file(line));
  std::map<std::string, std::string> saved;
  for (std::string flag, value; file >> flag && std::getline(file.ignore(), value);) {
    saved[flag] = value;
  }
  for (const auto& [flag, value] : run_flags(line)) {
    const auto found = saved.find(flag);
    if (found == saved.end() || found->second == value) continue;
    throw UsageError(flag + ": the run in " + line.checkpoint.string() + " has " + found->second +
                     ", not " + value);
  }
}

}  // namespace train
