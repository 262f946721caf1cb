#include "predict.hpp"

#include <torch/torch.h>

#include <iomanip>

#include "model_file.hpp"
#include "picture_folder.hpp"
#include "sconce/data/loader.hpp"
#include "sconce/vision/transforms.hpp"

namespace train {

namespace {

constexpr int64_t shown_classes = 5;

// A source of pictures as a model takes them.
struct PictureItems {
  std::vector<std::filesystem::path> files;
  sconce::vision::ImageFolderOptions options;

  int64_t size() const { return static_cast<int64_t>(files.size()); }

  torch::Tensor get(int64_t index) const {
    return options.transform(sconce::vision::read_image(files[index], options.mode));
  }
};

void print_picture(std::ostream& out, const std::filesystem::path& picture,
                   const torch::Tensor& probabilities, const std::vector<std::string>& classes) {
  const auto shown = std::min(shown_classes, probabilities.size(0));
  const auto [values, indices] = probabilities.topk(shown);
  out << picture.string();
  for (int64_t i = 0; i < shown; ++i) {
    out << (i == 0 ? ": " : ", ") << classes[indices[i].item<int64_t>()] << ' '
        << values[i].item<double>();
  }
  out << '\n';
}

}  // namespace

void predict(const PredictLine& line, std::ostream& out) {
  const torch::NoGradGuard no_grad;
  TrainedModel model = load_model(line.weights);
  const sconce::vision::transforms::Normalize normalize(model.images.mean, model.images.std);
  const PictureItems items{line.pictures, reading_as(model.images.shape)};
  std::vector<torch::Tensor> probabilities;
  for (const auto& batch : sconce::data::Loader(items, {.batch_size = 64})) {
    const auto answer = model.network->forward(normalize(batch.to(torch::kFloat)));
    probabilities.push_back(answer.softmax(1));
  }
  const torch::Tensor all = torch::cat(probabilities);
  out << std::fixed << std::setprecision(2);
  for (size_t i = 0; i < line.pictures.size(); ++i) {
    print_picture(out, line.pictures[i], all[static_cast<int64_t>(i)], model.images.classes);
  }
}

}  // namespace train
