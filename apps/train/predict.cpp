#include "predict.hpp"

#include <torch/torch.h>

#include <iomanip>

#include "picture_folder.hpp"
#include "program_file.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/vision/transforms.hpp"
#include "table_data.hpp"

namespace train {

namespace {

constexpr int64_t shown_classes = 5;

// A source of images in the format that the model expects.
struct PictureItems {
  std::vector<std::filesystem::path> files;
  sconce::vision::ImageFolderOptions options;

  int64_t size() const { return static_cast<int64_t>(files.size()); }

  torch::Tensor get(int64_t index) const {
    return options.transform(
        sconce::vision::read_image(files[index], options.mode, options.limits));
  }
};

// Prints the classes of an example, or the value that a regression model predicts for it.
void print_answer(std::ostream& out, const std::string& example, const torch::Tensor& output,
                  const Task& task) {
  out << example << ": ";
  if (task.is_regression()) {
    out << std::defaultfloat << std::setprecision(7)
        << output.item<double>() * task.std.back() + task.mean.back() << '\n';
    return;
  }
  const auto [values, indices] = output.softmax(0).topk(std::min(shown_classes, output.size(0)));
  out << std::fixed << std::setprecision(2);
  for (int64_t i = 0; i < values.size(0); ++i) {
    out << (i == 0 ? "" : ", ") << task.classes[indices[i].item<int64_t>()] << ' '
        << values[i].item<double>();
  }
  out << '\n';
}

}  // namespace

void predict(const PredictLine& line, std::ostream& out) {
  const torch::NoGradGuard no_grad;
  const auto [task, forward] = load_predictor(line.weights);
  std::vector<std::string> names;
  std::vector<torch::Tensor> outputs;
  if (task.is_table()) {
    for (const auto& file : line.files) {
      const torch::Tensor rows = read_rows(file, task, line.limits);
      for (const auto& batch : rows.split(1000)) outputs.push_back(forward(batch));
      for (int64_t i = 1; i <= rows.size(0); ++i) {
        names.push_back(file.string() + ", row " + std::to_string(i));
      }
    }
  } else {
    const sconce::vision::transforms::Normalize normalize(task.mean, task.std);
    const PictureItems items{line.files, folder_options(task.shape, line.limits.image)};
    for (const auto& batch : sconce::data::DataLoader(items, {.batch_size = 64})) {
      outputs.push_back(forward(normalize(batch.to(torch::kFloat))));
    }
    for (const auto& file : line.files) names.push_back(file.string());
  }
  const torch::Tensor all = torch::cat(outputs);
  for (size_t i = 0; i < names.size(); ++i) {
    print_answer(out, names[i], all[static_cast<int64_t>(i)], task);
  }
}

}  // namespace train
