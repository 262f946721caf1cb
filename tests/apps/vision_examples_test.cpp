// Tests the example that fine-tunes a network on images and the example that serves the fine-tuned
// network.
#include <torch/torch.h>

#include "apps/run_example.hpp"
#include "catch.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/vision/image.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "sconce/vision/transforms.hpp"
#include "support/check_refused.hpp"
#include "support/temp_dir.hpp"
#include "vision/png.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::check_refused;
using sconce::test::run_example;

namespace {

namespace fs = std::filesystem;

// Returns a noisy image of shape (3, height, 40) in which one channel is bright.
torch::Tensor bright(int64_t channel, int64_t height) {
  auto picture = torch::randint(100, {3, height, 40}, torch::kByte);
  picture[channel] += 150;
  return picture;
}

void write_pictures(const fs::path& folder, int64_t channel, int64_t count) {
  fs::create_directories(folder);
  for (int64_t i = 0; i < count; ++i) {
    sconce::vision::write_png(bright(channel, 30 + i),
                              folder / (std::to_string(channel * count + i) + ".png"));
  }
}

// Writes the weights, plus eight training images, four test images, and two images to serve for
// each class.
void write_task(const fs::path& folder) {
  torch::manual_seed(0);
  for (const auto& [name, channel] : {std::pair("blue", 2), std::pair("red", 0)}) {
    write_pictures(folder / "train" / name, channel, 8);
    write_pictures(folder / "test" / name, channel, 4);
    write_pictures(folder / "new", channel, 2);
  }
  const auto net = sconce::vision::models::resnet18();
  sconce::io::save_torch(folder / "weights.pt", sconce::nn::state_dict(*net));
}

// Returns the lines that the serving example prints when it processes the images as one batch.
std::string expected_lines(const std::vector<fs::path>& files, const fs::path& weights) {
  namespace transforms = sconce::vision::transforms;
  auto net = sconce::vision::models::resnet18({.num_classes = 2});
  sconce::nn::load_state_dict(*net, sconce::io::load_torch_state_dict(weights));
  net->eval();
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> batch;
  for (const auto& file : files) {
    auto x = transforms::Resize({256, 256})(sconce::vision::read_image(file));
    x = transforms::CenterCrop({224, 224})(x).to(torch::kFloat) / 255;
    batch.push_back(transforms::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})(x));
  }
  const auto blue = net->forward(torch::stack(batch)).softmax(1).select(1, 0);
  std::string lines;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto p = blue[static_cast<int64_t>(i)].item<double>();
    char line[100];
    std::snprintf(line, sizeof line, "%s: %s, %.3f\n", files[i].filename().c_str(),
                  p > 0.5 ? "blue" : "red", std::max(p, 1 - p));
    lines += line;
  }
  return lines;
}

}  // namespace

TEST_CASE(
    "the fine-tuning example trains the last layer, and the serving example serves the resulting "
    "weights") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const sconce::test::TempDir temporary;
  const fs::path& folder = temporary.path();
  write_task(folder);

  const auto tuned = run_example(folder, "fine_tuning train test weights.pt tuned.pt");
  INFO(tuned.out << tuned.err);
  REQUIRE(tuned.exit_code == 0);
  CHECK_THAT(tuned.out, StartsWith("epoch 1/3: loss ") && ContainsSubstring("\nepoch 3/3: loss "));
  const auto before = sconce::io::load_torch_state_dict(folder / "weights.pt");
  const auto after = sconce::io::load_torch_state_dict(folder / "tuned.pt");
  CHECK(after["layer4.1.conv2.weight"].equal(before["layer4.1.conv2.weight"]));
  REQUIRE(after["fc.weight"].sizes() == torch::IntArrayRef{2, 512});
  CHECK(after["fc.weight"].isfinite().all().item<bool>());

  const auto served = run_example(folder, "serving tuned.pt new blue red");
  REQUIRE(served.exit_code == 0);
  const fs::path pictures = folder / "new";
  const std::string expected = expected_lines(
      {pictures / "0.png", pictures / "1.png", pictures / "4.png", pictures / "5.png"},
      folder / "tuned.pt");
  CHECK_THAT(served.out, StartsWith(expected));
  CHECK_THAT(served.out, ContainsSubstring(" images per second\n"));
}

TEST_CASE("the image examples reject invalid arguments with a one-line error") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const sconce::test::TempDir temporary;
  const fs::path& folder = temporary.path();
  write_task(folder);
  const std::tuple<const char*, int, const char*> refused[] = {
      {"fine_tuning train", 2, "usage: fine_tuning TRAIN TEST"},
      {"fine_tuning train nowhere weights.pt tuned.pt", 1, "nowhere"},
      {"fine_tuning train test nowhere.pt tuned.pt", 1, "nowhere.pt"},
      {"serving weights.pt new", 2, "usage: serving WEIGHTS.pt"},
      {"serving weights.pt nowhere blue red", 1, "nowhere"},
      {"serving weights.pt new blue red", 1, "fc.weight"}};
  for (const auto& [command, exit_code, why] : refused) {
    INFO(command);
    check_refused(run_example(folder, command), exit_code, why);
  }
  fs::resize_file(folder / "test/red/2.png", 40);
  const auto damaged = run_example(folder, "fine_tuning train test weights.pt tuned.pt");
  CHECK(damaged.exit_code == 1);
  CHECK_THAT(damaged.err, ContainsSubstring("2.png"));
  CHECK_FALSE(fs::exists(folder / "tuned.pt"));
}
