// Tests which parts of a captured step `Trainer::fit_epoch` keeps between calls.

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"

using sconce::Trainer;
using sconce::data::Batches;
using sconce::data::Dataset;
using sconce::test::points;

namespace {

// A model that counts how many times its host code runs.
struct CountingModel : torch::nn::Module {
  explicit CountingModel(int64_t hidden = 8) {
    torch::manual_seed(0);
    layers->push_back(torch::nn::Linear(2, hidden));
    layers->push_back(torch::nn::Dropout(0.1));
    layers->push_back(torch::nn::Linear(hidden, 2));
    register_module("layers", layers);
  }

  torch::Tensor training_step(const Dataset& batch) {
    ++host_runs;
    return torch::cross_entropy_loss(layers->forward(batch.data) * factor, batch.target);
  }

  torch::nn::Sequential layers;
  double factor = 1;
  int host_runs = 0;
};

Batches batches(int64_t batch_size = 16) {
  return Batches(points(96), {.batch_size = batch_size, .shuffle = true, .seed = 7});
}

// A model, its optimizer, and its Trainer.
struct EpochTraining {
  explicit EpochTraining(bool graph, bool clips = false)
      : trainer({.num_gpus = 0, .gradient_clip_val = clips ? 0.5 : 0.0, .graph = graph}) {
    make_optimizer();
  }

  void make_optimizer() {
    optimizer.emplace(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  }

  double epoch(int64_t batch_size = 16) {
    return trainer.fit_epoch(*model, *optimizer, batches(batch_size)).loss;
  }

  std::shared_ptr<CountingModel> model = std::make_shared<CountingModel>();
  std::optional<sconce::optim::SGD> optimizer = {};
  Trainer trainer;
};

// Runs six captured and six eager epochs, calls `between` before the fourth epoch, and expects the
// same results. Returns how many times the host code of the captured step ran in each epoch.
std::vector<int> host_runs(const std::function<void(EpochTraining&)>& between, bool clips = false) {
  EpochTraining plain(/*graph=*/false, clips), captured(/*graph=*/true, clips);
  std::vector<int> runs;
  for (int epoch = 0; epoch < 6; ++epoch) {
    INFO("epoch " << epoch);
    if (epoch == 3) {
      between(plain);
      between(captured);
    }
    const auto train = [&](EpochTraining& training) {
      training.model->host_runs = 0;
      torch::manual_seed(epoch);
      return training.epoch();
    };
    CHECK(train(plain) == train(captured));
    const auto expected = plain.model->parameters(), found = captured.model->parameters();
    for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i].equal(expected[i]));
    runs.push_back(captured.model->host_runs);
  }
  return runs;
}

}  // namespace

TEST_CASE("with graph enabled, all epochs of a loop on the CPU share one capture") {
  CHECK(host_runs([](EpochTraining&) {}) == std::vector<int>{4, 0, 0, 0, 0, 0});
  CHECK(host_runs([](EpochTraining&) {}, /*clips=*/true) == std::vector<int>{4, 0, 0, 0, 0, 0});
  const auto rate = [](EpochTraining& training) {
    training.optimizer->param_groups()[0].options().set_lr(0.01);
  };
  CHECK(host_runs(rate) == std::vector<int>{4, 0, 0, 0, 0, 0});
}

TEST_CASE(
    "a step is captured again if its model or optimizer is replaced, even at the same address, or "
    "if a parameter group is added") {
  const std::vector<int> anew = {4, 0, 0, 4, 0, 0};
  const auto other_model = [](EpochTraining& training) {
    training.model = std::make_shared<CountingModel>(5);
    training.make_optimizer();
  };
  CHECK(host_runs(other_model) == anew);
  // The optimizer is recreated at the same address.
  CHECK(host_runs([](EpochTraining& training) { training.make_optimizer(); }) == anew);
  const auto other_group = [](EpochTraining& training) {
    const auto parameter = torch::ones({2}, torch::requires_grad());
    training.optimizer->add_param_group({std::vector<torch::Tensor>{parameter}});
  };
  CHECK(host_runs(other_group) == anew);
}

TEST_CASE("a step is captured again if its model is destroyed and rebuilt at the same address") {
  alignas(CountingModel) std::byte place[sizeof(CountingModel)];
  const auto losses = [&](bool graph) {
    Trainer trainer({.num_gpus = 0, .graph = graph});
    std::vector<double> all;
    for (int made = 0; made < 3; ++made) {
      const auto destroy = [](CountingModel* model) { model->~CountingModel(); };
      const std::shared_ptr<CountingModel> model(new (place) CountingModel(), destroy);
      model->factor = 1 + made;
      sconce::optim::SGD optimizer(model->parameters(), 0.1);
      for (int epoch = 0; epoch < 2; ++epoch) {
        torch::manual_seed(epoch);
        all.push_back(trainer.fit_epoch(*model, optimizer, batches()).loss);
      }
      CHECK(model->host_runs == (graph ? 4 : 12));
    }
    return all;
  };
  CHECK(losses(true) == losses(false));
}

TEST_CASE("a step is captured again in each call if its model is not owned by a shared pointer") {
  CountingModel model;
  sconce::optim::SGD optimizer(model.parameters(), 0.1);
  Trainer trainer({.num_gpus = 0, .graph = true});
  for (int epoch = 0; epoch < 2; ++epoch) trainer.fit_epoch(model, optimizer, batches());
  CHECK(model.host_runs == 8);
}

TEST_CASE("if a parameter's size changes between two epochs, the step is captured again") {
  const auto resize = [](EpochTraining& training) {
    torch::manual_seed(3);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : training.model->parameters()) {
      if (parameter.size(0) == 2 && parameter.dim() == 1) continue;  // the bias of the output layer
      auto sizes = parameter.sizes().vec();
      for (auto& size : sizes) size = size == 8 ? 5 : size;
      parameter.mutable_grad().reset();
      parameter.set_data(torch::randn(sizes));
      training.optimizer->state().erase(parameter.unsafeGetTensorImpl());
    }
  };
  CHECK(host_runs(resize) == std::vector<int>{4, 0, 0, 2, 0, 0});
}

TEST_CASE(
    "a step is captured again for a batch with a new shape, and the capture for the old shape is "
    "dropped") {
  EpochTraining plain(false), captured(true);
  for (const int64_t batch_size : {16, 16, 8, 8, 16}) {
    const auto train = [&](EpochTraining& training) {
      training.model->host_runs = 0;
      torch::manual_seed(batch_size);
      return training.epoch(batch_size);
    };
    CHECK(train(plain) == train(captured));
  }
  CHECK(captured.model->host_runs == 4);
}

TEST_CASE("if a layer's mode changes between two epochs, the step is captured again") {
  struct Frozen : CountingModel {
    void train(bool on = true) override {
      CountingModel::train(on);
      if (is_frozen) layers->eval();
    }
    bool is_frozen = false;
  };
  const auto losses = [](bool graph) {
    const auto model = std::make_shared<Frozen>();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    Trainer trainer({.num_gpus = 0, .graph = graph});
    std::vector<double> all;
    for (int epoch = 0; epoch < 4; ++epoch) {
      torch::manual_seed(epoch);
      model->is_frozen = epoch >= 2;
      all.push_back(trainer.fit_epoch(*model, optimizer, batches()).loss);
    }
    return all;
  };
  CHECK(losses(true) == losses(false));
}
