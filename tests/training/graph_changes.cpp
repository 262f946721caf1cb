// Tests that callbacks can make the same changes to a fit whether or not `graph` is enabled.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"

namespace graph_changes {

using sconce::Trainer;
using sconce::data::Batches;
using sconce::test::points;

namespace {

// Once frozen, this network keeps its dropout layer in evaluation mode. On the CPU, it also keeps
// its batch norm layer in evaluation mode.
struct FreezingNet : torch::nn::Module {
  explicit FreezingNet(bool has_norm) {
    torch::manual_seed(0);
    first = register_module("first", torch::nn::Linear(2, 8));
    if (has_norm) norm = register_module("norm", torch::nn::BatchNorm1d(8));
    dropout = register_module("dropout", torch::nn::Dropout(0.2));
    last = register_module("last", torch::nn::Linear(8, 2));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    ++host_runs;
    const auto hidden = first->forward(x);
    return last->forward(dropout->forward(norm ? norm->forward(hidden) : hidden).relu());
  }

  void train(bool on = true) override {
    torch::nn::Module::train(on);
    if (!is_frozen) return;
    dropout->eval();
    if (norm) norm->eval();
  }

  torch::nn::Linear first = nullptr, last = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Dropout dropout = nullptr;
  bool is_frozen = false;
  int host_runs = 0;
};

struct Training {
  explicit Training(torch::Device on)
      : device(on), net(std::make_shared<FreezingNet>(device.is_cpu())) {
    net->to(device);
    auto parameters = net->first->parameters();
    if (net->norm) parameters.push_back(net->norm->weight);
    sconce::optim::ExtraOptions extra;
    if (device.is_cuda()) extra.lr = torch::full({}, 0.1, device);
    optimizer = std::make_unique<sconce::optim::SGD>(
        parameters, torch::optim::SGDOptions(0.1).momentum(0.9), extra);
  }

  torch::Device device;
  std::shared_ptr<FreezingNet> net;
  std::unique_ptr<sconce::optim::SGD> optimizer;
};

struct Change {
  const char* name;
  void (*make)(Training&);
  void (*undo)(Training&);
};

void move_tensors(Training& training) {
  const torch::NoGradGuard no_grad;
  for (auto& tensor : training.net->parameters()) tensor.set_data(tensor.clone());
  for (auto& tensor : training.net->buffers()) tensor.set_data(tensor.clone() + 1);
}

void add_group(Training& training) {
  training.optimizer->add_param_group({training.net->last->parameters()});
}

const std::vector<Change> changes = {
    {"modes by train()",
     [](Training& t) {
       t.net->is_frozen = true;
       t.net->train();
     },
     [](Training& t) {
       t.net->is_frozen = false;
       t.net->train();
     }},
    {"the mode of a layer", [](Training& t) { t.net->dropout->eval(); },
     [](Training& t) { t.net->dropout->train(); }},
    {"frozen and thawed", [](Training& t) { t.net->first->weight.requires_grad_(false); },
     [](Training& t) { t.net->first->weight.requires_grad_(true); }},
    {"a layer that the optimizer does not have",
     [](Training& t) { t.net->last->weight.requires_grad_(false); },
     [](Training& t) { t.net->last->weight.requires_grad_(true); }},
    {"a group", add_group, [](Training& t) { t.optimizer->param_groups().pop_back(); }},
    {"memory", move_tensors, move_tensors},
    {"the learning rate",
     [](Training& t) {
       t.optimizer->param_groups()[0].options().set_lr(0.5);
       t.optimizer->write_lr();
     },
     [](Training& t) {
       t.optimizer->param_groups()[0].options().set_lr(0.01);
       t.optimizer->write_lr();
     }}};

enum class When { after_a_step, after_an_epoch, between_fits };

// Applies a change at one point in a fit and reverts the change at a later point.
class Changing : public sconce::TrainerCallback {
 public:
  Changing(Training& training, const Change& change, When when)
      : training_(training), change_(change), when_(when) {}

  void on_after_optimizer_step(sconce::Fit& fit) override {
    if (when_ != When::after_a_step || fit.batch != 3) return;
    if (fit.epochs.size() == 1) change_.make(training_);
    if (fit.epochs.size() == 4) change_.undo(training_);
  }

  void on_epoch_end(sconce::Fit& fit) override {
    if (when_ != When::after_an_epoch) return;
    if (fit.epochs.size() == 2) change_.make(training_);
    if (fit.epochs.size() == 4) change_.undo(training_);
  }

 private:
  Training& training_;
  const Change& change_;
  When when_;
};

std::vector<double> losses_of(Training& training, const Change& change, When when, bool graph) {
  Trainer trainer({.max_epochs = 6, .device = training.device, .graph = graph});
  Changing changing(training, change, when);
  std::vector<double> losses;
  const int fits = when == When::between_fits ? 3 : 1;
  for (int fit = 0; fit < fits; ++fit) {
    if (fit == 1) change.make(training);
    if (fit == 2) change.undo(training);
    torch::manual_seed(fit);
    const Batches batches(points(96), {.batch_size = 16, .shuffle = true, .seed = 7});
    const auto result = trainer.fit(training.net, *training.optimizer, {batches, {}, {&changing}});
    for (const auto& epoch : result.epochs) losses.push_back(epoch.loss);
  }
  return losses;
}

void check_changes(torch::Device device) {
  for (const auto& change : changes) {
    for (const auto when : {When::after_a_step, When::after_an_epoch, When::between_fits}) {
      INFO(change.name << ", " << static_cast<int>(when));
      Training plain(device), captured(device);
      CHECK(losses_of(captured, change, when, /*graph=*/true) ==
            losses_of(plain, change, when, /*graph=*/false));
      CHECK(captured.net->host_runs < plain.net->host_runs);
      const auto expected = plain.net->named_parameters(), found = captured.net->named_parameters();
      for (const auto& tensor : expected) CHECK(found[tensor.key()].equal(tensor.value()));
      const auto buffers = plain.net->named_buffers(),
                 found_buffers = captured.net->named_buffers();
      for (const auto& tensor : buffers) CHECK(found_buffers[tensor.key()].equal(tensor.value()));
    }
  }
}

}  // namespace

TEST_CASE(
    "on the CPU, fits respond identically to changes made by callbacks whether or not graph is "
    "enabled") {
  check_changes(torch::kCPU);
}

TEST_CASE(
    "on a GPU, fits respond identically to changes made by callbacks whether or not graph is "
    "enabled",
    "[gpu]") {
  sconce::test::require_gpu();
  check_changes(sconce::gpu());
}

}  // namespace graph_changes
