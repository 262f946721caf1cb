#include "train/models.hpp"

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"
#include "train/model_file.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

sconce::StateDict values_of(const torch::nn::Module& model) {
  sconce::StateDict values;
  for (const auto& item : sconce::nn::state_dict(model)) {
    values.insert(item.key(), item.value().clone());
  }
  return values;
}

// Checks that the tensors in the last layer differ from the given state and that all other tensors
// match the state.
void check_kept(const torch::nn::Module& model, const sconce::StateDict& state,
                const std::string& last_layer) {
  for (const auto& item : sconce::nn::state_dict(model)) {
    INFO(item.key());
    const bool is_last = item.key().starts_with(last_layer + '.');
    CHECK(torch::equal(item.value(), state[item.key()]) == !is_last);
  }
}

}  // namespace

TEST_CASE("every sconce-train model can run in DataParallel replicas") {
  const torch::NoGradGuard no_grad;
  for (const auto& name : train::model_names()) {
    INFO(name);
    // The other models are large and use the same layer types as resnet18.
    if (train::is_vision_model(name) && name != "resnet18") continue;
    const std::vector<int64_t> image =
        name == "resnet18" ? std::vector<int64_t>{3, 32, 32} : std::vector<int64_t>{1, 8, 8};
    const auto x = torch::randn({6, image[0], image[1], image[2]});
    auto model = train::make_model(name, image, 10);
    sconce::nn::DataParallel replicas(model, {.device_ids = {sconce::cpu(), sconce::cpu()}});
    model->eval();
    CHECK(torch::allclose(replicas(x), model->forward(x), 1.3e-6, 1e-5));
  }
}

TEST_CASE("with the same seed, sconce-train's models start from the same weights as in Python",
          "[python]") {
  const sconce::test::TempDir folder;
  sconce::test::ask_python(folder, "train_models.py", "weights");
  const auto states = sconce::io::load_torch(folder.path() / "weights").toGenericDict();
  REQUIRE(states.size() == 4);
  for (const auto& network : states) {
    INFO(network.key().toStringRef());
    torch::manual_seed(3);
    const auto ours =
        sconce::nn::state_dict(*train::make_model(network.key().toStringRef(), {1, 8, 8}, 10));
    const auto pythons = network.value().toGenericDict();
    CHECK(ours.size() == pythons.size());
    for (const auto& item : ours) {
      INFO(item.key());
      CHECK(item.value().equal(pythons.at(item.key()).toTensor()));
    }
  }
}

TEST_CASE(
    "a sconce::vision network has the same state names and outputs in sconce-train as in the "
    "library") {
  torch::manual_seed(1);
  auto ours = train::make_model("resnet18", {3, 40, 48}, 5);
  torch::manual_seed(1);
  auto theirs = sconce::vision::models::resnet18({.num_classes = 5});
  CHECK(sconce::nn::state_dict(*ours).keys() == sconce::nn::state_dict(*theirs).keys());
  const auto x = torch::randn({2, 3, 40, 48});
  CHECK(ours->forward(x).equal(theirs->forward(x)));
  CHECK(ours->last_layer() == "fc");
  auto transformer = train::make_model("vit_b_16", {3, 32, 32}, 5);
  CHECK(transformer->last_layer() == "heads.head");
  CHECK(transformer->named_parameters().contains("class_token"));
  CHECK(transformer->forward(torch::randn({1, 3, 32, 32})).sizes() == torch::IntArrayRef{1, 5});
  CHECK_THAT(sconce::test::error_of([] { train::make_model("resnet18", {1, 32, 32}, 5); }),
             StartsWith("make_model: resnet18 requires images with 3 channels, got 1"));
  CHECK_THAT(sconce::test::error_of([] { train::make_model("vit_b_16", {3, 32, 48}, 5); }),
             StartsWith("make_model: vit_b_16 requires square images, got 32x48"));
}

TEST_CASE("only the last layer of a frozen model is trained, even in replicas") {
  const bool in_replicas = GENERATE(false, true);
  const std::string name = GENERATE("lenet", "resnet", "resnet18");
  INFO(name);
  torch::manual_seed(0);
  auto model = train::make_model(name, {3, 32, 32}, 4);
  model->freeze();
  const auto before = values_of(*model);
  sconce::nn::DataParallel replicas(model, {.device_ids = {sconce::cpu(), sconce::cpu()}});
  model->train();
  const auto x = torch::randn({6, 3, 32, 32});
  const auto logits = in_replicas ? replicas(x) : model->forward(x);
  torch::cross_entropy_loss(logits, torch::arange(6).remainder(4)).backward();
  std::vector<torch::Tensor> trained;
  for (const auto& item : model->named_parameters()) {
    CHECK(item.value().grad().defined() == item.key().starts_with(model->last_layer() + '.'));
    if (item.value().requires_grad()) trained.push_back(item.value());
  }
  sconce::optim::SGD(trained, torch::optim::SGDOptions(0.1)).step();
  check_kept(*model, before, model->last_layer());
}

TEST_CASE(
    "loading weights for a different number of classes leaves the model's last layer unchanged") {
  const sconce::test::TempDir folder;
  const bool is_safetensors = GENERATE(false, true);
  const auto file = folder.path() / (is_safetensors ? "w.safetensors" : "w.pt");
  torch::manual_seed(0);
  auto from = train::make_model("resnet", {3, 8, 8}, 10);
  const train::Task images{.shape = {3, 8, 8},
                           .mean = {1, 2, 3},
                           .std = {4, 5, 6},
                           .classes = std::vector<std::string>(10, "a")};
  if (is_safetensors) {
    sconce::io::save_safetensors(file, sconce::nn::state_dict(*from),
                                 train::model_metadata("resnet", images));
  } else {
    sconce::io::save_torch(file, sconce::nn::state_dict(*from));
  }
  const auto weights = train::load_pretrained(file, "resnet");
  CHECK(weights.task.mean == (is_safetensors ? images.mean : std::vector<double>{}));
  CHECK(weights.task.std == (is_safetensors ? images.std : std::vector<double>{}));

  auto same = train::make_model("resnet", {3, 8, 8}, 10);
  CHECK_FALSE(train::load_weights(same, weights).has_value());
  check_kept(*same, values_of(*from), "none");
  auto other = train::make_model("resnet", {3, 8, 8}, 3);
  const auto drawn = values_of(*other);
  CHECK(train::load_weights(other, weights) == 10);
  for (const auto& item : sconce::nn::state_dict(*other)) {
    const bool is_last = item.key().starts_with(other->last_layer() + '.');
    CHECK(item.value().equal((is_last ? drawn : weights.state)[item.key()]));
  }
}

TEST_CASE(
    "weights from another model are rejected with an error that lists ten weight names, and the "
    "model is unchanged") {
  const sconce::test::TempDir folder;
  const auto file = folder.path() / "w.pt";
  sconce::io::save_torch(file, sconce::nn::state_dict(*train::make_model("resnet", {3, 8, 8}, 10)));
  auto network = train::make_model("resnet18", {3, 32, 32}, 10);
  const auto before = values_of(*network);
  const auto weights = train::load_pretrained(file, "resnet18");
  CHECK(weights.task.mean == std::vector<double>{0.485 * 255, 0.456 * 255, 0.406 * 255});
  CHECK(weights.task.std == std::vector<double>{0.229 * 255, 0.224 * 255, 0.225 * 255});
  const std::string error = sconce::test::error_of([&] { train::load_weights(network, weights); });
  CHECK_THAT(error, StartsWith(file.string() + ": expected weights that match --model: "));
  CHECK_THAT(error, ContainsSubstring("; missing: conv1.weight, ") &&
                        ContainsSubstring(" and 92 more; unexpected: 0.weight, "));
  CHECK_THAT(error, !ContainsSubstring("layer2"));
  check_kept(*network, before, "none");
  CHECK_THAT(sconce::test::error_of([&] { train::load_pretrained(folder.path() / "none.pt", ""); }),
             ContainsSubstring("none.pt"));
}
