#include "model_file.hpp"

#include <c10/util/StringUtil.h>
#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "meta_device.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"

namespace train {

namespace {

// Keys in the metadata. Python readers of safetensors files also require the "format" key.
constexpr auto model_key = "sconce.model";
constexpr auto shape_key = "sconce.shape";
constexpr auto mean_key = "sconce.mean";
constexpr auto std_key = "sconce.std";
constexpr auto classes_key = "sconce.classes";
constexpr auto columns_key = "sconce.columns";
constexpr auto target_key = "sconce.target";
constexpr auto program_key = "sconce.program";  // in files from sconce::program::record
// The first word in each line that describes columns.
constexpr std::string_view column_word = "column ";
constexpr std::string_view category_word = "category ";

// Returns the values as text, one per line, each in the shortest form that parses to the same
// value.
template <class T>
std::string lines_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    char digits[32];
    if (!text.empty()) text += '\n';
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  return text;
}

// The maximum number of lines in a metadata value. A line occupies more bytes in memory than in the
// file, and no network has this many classes or columns.
constexpr int64_t max_lines = 1 << 20;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Metadata that was read from a file. Error messages start with the file's path.
class Texts {
 public:
  explicit Texts(const std::filesystem::path& file)
      : Texts(file, sconce::io::load_safetensors_metadata(file)) {}
  Texts(const std::filesystem::path& file, sconce::io::Metadata texts)
      : file_(file.string()), texts_(std::move(texts)) {}

  bool contains(const std::string& key) const { return texts_.contains(key); }

  const std::string& text(const std::string& key) const {
    const auto found = texts_.find(key);
    TORCH_CHECK(found != texts_.end(), file_,
                ": expected a file written by sconce-train, found no ", key, " in the metadata");
    return found->second;
  }

  void check(bool holds, const std::string& key, const std::string& expected) const {
    TORCH_CHECK(holds, file_, ": expected ", expected, " as ", key, " in the metadata, found '",
                text(key).substr(0, 200), "'");
  }

  std::vector<std::string> lines(const std::string& key) const {
    const std::string& all = text(key);
    check(std::count(all.begin(), all.end(), '\n') < max_lines, key,
          "at most " + std::to_string(max_lines) + " lines");
    return split(all);
  }

  template <class T>
  std::vector<T> numbers(const std::string& key) const {
    std::vector<T> values;
    for (const auto& line : lines(key)) {
      T value = 0;
      const char* last = line.data() + line.size();
      const auto [end, error] = std::from_chars(line.data(), last, value);
      check(error == std::errc() && end == last, key, "a number on each line");
      values.push_back(value);
    }
    return values;
  }

 private:
  std::string file_;
  sconce::io::Metadata texts_;
};

// The maximum height and width of a network's input. A larger value means that the file is
// corrupted.
constexpr int64_t max_side = 4096;

std::vector<sconce::io::CsvColumn> read_columns(const Texts& texts) {
  std::vector<sconce::io::CsvColumn> columns;
  for (const auto& line : texts.lines(columns_key)) {
    const bool is_column = line.starts_with(column_word);
    texts.check(is_column || (line.starts_with(category_word) && !columns.empty()), columns_key,
                "a column or a category on each line");
    if (is_column) {
      columns.push_back({.name = line.substr(column_word.size())});
    } else {
      columns.back().categories.push_back(line.substr(category_word.size()));
    }
  }
  return columns;
}

Task read_task(const Texts& texts) {
  const auto shape = texts.numbers<int64_t>(shape_key);
  Task task{.shape = shape};
  if (texts.contains(columns_key)) {
    task = task_of_table(read_columns(texts), texts.text(target_key));
    texts.check(task.shape == shape, shape_key, "the number of features");
  } else {
    const auto is_side = [](int64_t side) { return side >= 1 && side <= max_side; };
    texts.check(shape.size() == 3 && (shape[0] == 1 || shape[0] == 3) && is_side(shape[1]) &&
                    is_side(shape[2]),
                shape_key, "1 or 3 channels, a height, and a width");
    task.classes = texts.lines(classes_key);
  }
  task.mean = texts.numbers<double>(mean_key);
  task.std = texts.numbers<double>(std_key);
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const auto is_positive = [](double value) { return std::isfinite(value) && value > 0; };
  const auto count = static_cast<size_t>(shape[0]) + (task.is_regression() ? 1 : 0);
  texts.check(
      task.mean.size() == count && std::all_of(task.mean.begin(), task.mean.end(), is_finite),
      mean_key, "a finite value for each channel or column");
  texts.check(
      task.std.size() == count && std::all_of(task.std.begin(), task.std.end(), is_positive),
      std_key, "a positive value for each channel or column");
  return task;
}

// Compares the weights with the network described by the metadata. Does not allocate memory for the
// network, because even a small file may describe a network of many gigabytes.
void check_fits(const TrainedModel& model, const sconce::StateDict& weights) {
  const MetaDevice no_memory;
  sconce::nn::load_state_dict(*make_model(model.name, model.task.shape, model.task.outputs()),
                              weights);
}

}  // namespace

bool is_program(const std::filesystem::path& file) {
  try {
    return sconce::io::load_safetensors_metadata(file).contains(program_key);
  } catch (const c10::Error&) {
    return false;
  }
}

sconce::io::Metadata model_metadata(const std::string& name, const Task& task) {
  sconce::io::Metadata texts = {{"format", "pt"},
                                {model_key, name},
                                {shape_key, lines_of(task.shape)},
                                {mean_key, lines_of(task.mean)},
                                {std_key, lines_of(task.std)}};
  if (!task.is_regression()) texts[classes_key] = c10::Join("\n", task.classes);
  if (task.is_table()) texts[columns_key] = c10::Join("\n", column_lines(task.columns));
  if (task.is_table()) texts[target_key] = task.target;
  return texts;
}

Task task_of_table(const std::vector<sconce::io::CsvColumn>& columns, const std::string& target) {
  Task task{.shape = {0}, .columns = columns, .target = target};
  for (const auto& column : columns) {
    if (column.name == target) {
      task.classes = column.categories;
    } else {
      task.shape[0] += std::max<int64_t>(std::ssize(column.categories), 1);
    }
  }
  return task;
}

std::vector<std::string> column_lines(const std::vector<sconce::io::CsvColumn>& columns) {
  std::vector<std::string> lines;
  for (const auto& column : columns) {
    lines.push_back(std::string(column_word) + column.name);
    for (const auto& category : column.categories) {
      lines.push_back(std::string(category_word) + category);
    }
  }
  return lines;
}

Task task_of(const sconce::io::Metadata& texts, const std::filesystem::path& file) {
  return read_task(Texts(file, texts));
}

Task load_task(const std::filesystem::path& file) {
  return read_task(Texts(file));
}

TrainedModel load_model(const std::filesystem::path& file) {
  const Texts texts(file);
  TrainedModel model{.name = texts.text(model_key), .task = read_task(texts)};
  const auto& names = model_names();
  texts.check(std::find(names.begin(), names.end(), model.name) != names.end(), model_key,
              "a network name");
  try {
    const sconce::StateDict weights = sconce::io::load_safetensors(file);
    check_fits(model, weights);
    model.network = make_model(model.name, model.task.shape, model.task.outputs());
    sconce::nn::load_state_dict(*model.network, weights);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, file.string(), ": expected weights that match the metadata's ", model.name,
                ": ", error.what_without_backtrace());
  }
  model.network->eval();
  return model;
}

Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name) {
  Pretrained weights{.file = file};
  if (is_vision_model(model_name)) {  // torchvision's normalization, scaled to bytes
    weights.task = {.mean = {0.485 * 255, 0.456 * 255, 0.406 * 255},
                    .std = {0.229 * 255, 0.224 * 255, 0.225 * 255}};
  }
  if (sconce::io::is_torch_file(file)) {
    weights.state = sconce::io::load_torch_state_dict(file);
    return weights;
  }
  TORCH_CHECK(!is_program(file), file.string(),
              ": expected weights, found a program, which can only predict");
  weights.state = sconce::io::load_safetensors(file);
  const Texts texts(file);
  if (texts.contains(model_key)) weights.task = read_task(texts);
  TORCH_CHECK(!weights.task.is_table(), file.string(),
              ": expected the weights of an image model, got the weights of a table model");
  return weights;
}

std::optional<int64_t> load_weights(Classifier& network, const Pretrained& weights) {
  std::optional<int64_t> classes;
  const auto own = sconce::nn::state_dict(*network);
  sconce::StateDict state;
  for (const auto& item : weights.state) {
    const torch::Tensor& given = item.value();
    const auto* made = own.find(item.key());
    const bool is_other = made != nullptr && item.key().starts_with(network->last_layer() + '.') &&
                          given.dim() == made->dim() && given.size(0) != made->size(0) &&
                          given.sizes().slice(1) == made->sizes().slice(1);
    if (is_other) classes = given.size(0);
    state.insert(item.key(), is_other ? *made : given);
  }
  try {
    sconce::nn::load_state_dict(*network, state);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, weights.file.string(),
                ": expected weights that match --model: ", error.what_without_backtrace());
  }
  return classes;
}

}  // namespace train
