#include "model_file.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"

namespace train {

namespace {

// Keys of the metadata. Python's readers also need "format".
constexpr auto model_key = "sconce.model";
constexpr auto shape_key = "sconce.shape";
constexpr auto mean_key = "sconce.mean";
constexpr auto std_key = "sconce.std";
constexpr auto classes_key = "sconce.classes";

// Returns the values as text, one per line, in the shortest form that reads back as the same value.
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

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The metadata of a file. Errors name the file.
class Texts {
 public:
  explicit Texts(const std::filesystem::path& file)
      : file_(file.string()), texts_(sconce::io::load_safetensors_metadata(file)) {}

  bool contains(const std::string& key) const { return texts_.contains(key); }

  std::string text(const std::string& key) const {
    const auto found = texts_.find(key);
    TORCH_CHECK(found != texts_.end(), file_,
                ": expected weights that sconce-train wrote, found no ", key, " in the metadata");
    return found->second;
  }

  void check(bool holds, const std::string& key, const std::string& expected) const {
    TORCH_CHECK(holds, file_, ": expected ", expected, " as ", key, " in the metadata, found '",
                text(key), "'");
  }

  template <class T>
  std::vector<T> numbers(const std::string& key) const {
    std::vector<T> values;
    for (const auto& line : split(text(key))) {
      T value = 0;
      const char* last = line.data() + line.size();
      const auto [end, error] = std::from_chars(line.data(), last, value);
      check(error == std::errc() && end == last, key, "a number in each line");
      values.push_back(value);
    }
    return values;
  }

 private:
  std::string file_;
  sconce::io::Metadata texts_;
};

// The largest side of a network's input. A larger one means that the file is damaged.
constexpr int64_t max_side = 4096;

Images read_images(const Texts& texts) {
  Images images{.shape = texts.numbers<int64_t>(shape_key),
                .mean = texts.numbers<double>(mean_key),
                .std = texts.numbers<double>(std_key),
                .classes = split(texts.text(classes_key))};
  const auto& shape = images.shape;
  const auto is_side = [](int64_t side) { return side >= 1 && side <= max_side; };
  texts.check(shape.size() == 3 && (shape[0] == 1 || shape[0] == 3) && is_side(shape[1]) &&
                  is_side(shape[2]),
              shape_key, "1 or 3 channels, a height and a width");
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const auto is_positive = [](double value) { return std::isfinite(value) && value > 0; };
  const auto channels = static_cast<size_t>(shape[0]);
  texts.check(images.mean.size() == channels &&
                  std::all_of(images.mean.begin(), images.mean.end(), is_finite),
              mean_key, "a finite number for each channel");
  texts.check(images.std.size() == channels &&
                  std::all_of(images.std.begin(), images.std.end(), is_positive),
              std_key, "a number above 0 for each channel");
  return images;
}

}  // namespace

sconce::io::Metadata model_metadata(const std::string& name, const Images& images) {
  std::string classes;
  for (const auto& name_of_class : images.classes) {
    classes += (classes.empty() ? "" : "\n") + name_of_class;
  }
  return {{"format", "pt"},
          {model_key, name},
          {shape_key, lines_of(images.shape)},
          {mean_key, lines_of(images.mean)},
          {std_key, lines_of(images.std)},
          {classes_key, classes}};
}

TrainedModel load_model(const std::filesystem::path& file) {
  const Texts texts(file);
  TrainedModel model{.name = texts.text(model_key), .images = read_images(texts)};
  const auto& names = model_names();
  texts.check(std::find(names.begin(), names.end(), model.name) != names.end(), model_key,
              "the name of a network");
  try {
    model.network = make_model(model.name, model.images.shape,
                               static_cast<int64_t>(model.images.classes.size()));
    sconce::nn::load_state_dict(*model.network, sconce::io::load_safetensors(file));
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, file.string(), ": expected the weights of its metadata's ", model.name, ": ",
                error.what_without_backtrace());
  }
  model.network->eval();
  return model;
}

Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name) {
  Pretrained weights{.file = file};
  if (is_of_vision(model_name)) {  // what torchvision's weights were trained with, for bytes
    weights.images = {.mean = {0.485 * 255, 0.456 * 255, 0.406 * 255},
                      .std = {0.229 * 255, 0.224 * 255, 0.225 * 255}};
  }
  if (file.extension() != ".safetensors") {
    weights.state = sconce::io::load_torch_state_dict(file);
    return weights;
  }
  weights.state = sconce::io::load_safetensors(file);
  const Texts texts(file);
  if (texts.contains(model_key)) weights.images = read_images(texts);
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
                ": expected the weights of --model: ", error.what_without_backtrace());
  }
  return classes;
}

}  // namespace train
