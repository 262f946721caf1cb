#include "run_flags.hpp"

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "flags.hpp"
#include "sconce/io/atomic_file.hpp"

namespace train {

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;  // names and values

// Returns the name of a named dataset, or a description of the data source, such as "a table". The
// path is not part of the description, because files may be moved.
std::string kind_of_data(const std::string& data) {
  if (is_named(data)) return data;
  if (is_table(data)) return "a table";
  return is_picture_folder(data) ? "a folder of images" : "a folder of IDX files";
}

// Returns the flag value to save. For --data, this is the description of the data source. If --lr
// is not given, the default learning rate is saved.
std::string saved_text(const BoundFlag& flag, const CommandLine& line) {
  if (flag.name == "--data") return kind_of_data(line.data);
  if (flag.name == "--lr") return shortest_text(line.learning_rate());
  return flag.text(line);
}

Facts flags_of(const CommandLine& line) {
  Facts facts;
  for (const auto& flag : flags()) {
    if (flag.is_saved) facts.emplace_back(flag.name, saved_text(flag, line));
  }
  return facts;
}

// If examples were changed or added, the split would change as well, and the run would be tested on
// examples that it was trained on. A table's columns are compared when the table is opened.
Facts facts_of(const CommandLine& line, const TrainingData& data) {
  Facts facts;
  const auto& classes = data.task.classes;
  if (!data.task.is_table()) {
    facts.emplace_back("--data:classes", std::to_string(classes.size()) + " classes");
  }
  if (is_picture_folder(line.data)) {
    for (size_t i = 0; i < classes.size(); ++i) {
      facts.emplace_back("--data:class-" + std::to_string(i), "class " + classes[i]);
    }
  }
  facts.emplace_back("--data:sizes", std::to_string(data.train_size) + " training and " +
                                         std::to_string(data.test_size) + " test examples");
  return facts;
}

// The list contains the flags first and then the data properties. Therefore, if the test fractions
// of two runs differ, the error reports --test-fraction.
Facts run_facts(const CommandLine& line, const TrainingData& data) {
  Facts facts = flags_of(line);
  const Facts data_facts = facts_of(line, data);
  facts.insert(facts.end(), data_facts.begin(), data_facts.end());
  return facts;
}

}  // namespace

std::filesystem::path run_flags_file(const CommandLine& line) {
  return line.checkpoint / "flags.txt";
}

void write_run_flags(const CommandLine& line, const TrainingData& data) {
  std::string text;
  for (const auto& [flag, value] : run_facts(line, data)) text += flag + ' ' + value + '\n';
  sconce::io::write_file(run_flags_file(line), text, "--checkpoint");
}

void check_run_flags(const CommandLine& line, const TrainingData& data) {
  const auto path = run_flags_file(line);
  std::istringstream file(
      std::filesystem::exists(path) ? sconce::io::read_file(path, "--checkpoint") : "");
  std::map<std::string, std::string> saved;
  for (std::string flag, value; file >> flag && std::getline(file.ignore(), value);) {
    saved[flag] = value;
  }
  for (const auto& [flag, value] : run_facts(line, data)) {
    const auto found = saved.find(flag);
    if (found == saved.end() || found->second == value) continue;
    throw UsageError(flag.substr(0, flag.find(':')) + ": the run in " + line.checkpoint.string() +
                     " has " + found->second + ", not " + value);
  }
}

}  // namespace train
