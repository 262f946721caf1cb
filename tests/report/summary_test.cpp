#include "sconce/report/summary.hpp"

#include <torch/torch.h>

#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/repr.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::summary;

namespace nn = torch::nn;

namespace {

using Shapes = std::vector<std::vector<int64_t>>;

std::vector<int64_t> read_list(std::istream& in) {
  size_t size = 0;
  in >> size;
  std::vector<int64_t> list(size);
  for (auto& value : list) in >> value;
  return list;
}

// Appends the module that the reference's script calls so.
void append(nn::Sequential& model, const std::string& kind, const std::vector<int64_t>& of) {
  if (kind == "Linear") return model->push_back(nn::Linear(of[0], of[1]));
  if (kind == "LinearNoBias")
    return model->push_back(nn::Linear(nn::LinearOptions(of[0], of[1]).bias(false)));
  if (kind == "Conv2d")
    return model->push_back(
        nn::Conv2d(nn::Conv2dOptions(of[0], of[1], of[2]).stride(of[3]).padding(of[4])));
  if (kind == "Embedding") return model->push_back(nn::Embedding(of[0], of[1]));
  if (kind == "BatchNorm1d") return model->push_back(nn::BatchNorm1d(of[0]));
  if (kind == "BatchNorm2d") return model->push_back(nn::BatchNorm2d(of[0]));
  if (kind == "LayerNorm") return model->push_back(nn::LayerNorm(nn::LayerNormOptions({of[0]})));
  if (kind == "MaxPool2d") return model->push_back(nn::MaxPool2d(of[0]));
  if (kind == "AvgPool2d") return model->push_back(nn::AvgPool2d(of[0]));
  if (kind == "Flatten") return model->push_back(nn::Flatten());
  if (kind == "Dropout") return model->push_back(nn::Dropout());
  if (kind == "ReLU") return model->push_back(nn::ReLU());
  if (kind == "Tanh") return model->push_back(nn::Tanh());
  if (kind == "Sigmoid") return model->push_back(nn::Sigmoid());
  FAIL("no module " << kind);
}

struct BlockImpl : nn::Module {
  BlockImpl() : inner(register_module("inner", nn::Linear(4, 4))) {
    scale = register_parameter("scale", torch::ones({4}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return inner->forward(x) * scale; }
  nn::Linear inner;
  torch::Tensor scale;
};
TORCH_MODULE(Block);

struct PairImpl : nn::Module {
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& a, const torch::Tensor& b) {
    return {a + b, a.sum()};
  }
};
TORCH_MODULE(Pair);

template <class T>
struct NamedImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

std::string text_of(const sconce::Summary& of) {
  std::ostringstream out;
  out << of;
  return out.str();
}

}  // namespace

TEST_CASE("summaries of 50 random Sequentials match torchinfo") {
  std::ifstream in(SCONCE_TESTS_DIR "/reference/summary.txt");
  int models = 0;
  for (std::string word, type, frozen; in >> word; ++models) {
    REQUIRE(word == "model");
    size_t size = 0;
    in >> size >> type >> frozen;
    const auto input = torch::zeros(read_list(in), type == "long" ? torch::kLong : torch::kFloat);
    nn::Sequential model;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<int64_t> parameters(size);
    for (size_t i = 0; i < size; ++i) {
      in >> word;
      append(model, word, read_list(in));
      shapes.push_back(read_list(in));
      in >> parameters[i];
    }
    if (frozen == "frozen") {
      for (auto& parameter : model[0]->parameters()) parameter.requires_grad_(false);
    }
    const auto of = summary(model, input);
    INFO("model " << models << '\n' << of);
    REQUIRE(of.rows.size() == size + 1);
    for (size_t i = 0; i < size; ++i) {
      CHECK(of.rows[i + 1].output_shapes == Shapes{shapes[i]});
      CHECK(of.rows[i + 1].parameters == parameters[i]);
    }
    CHECK(of.rows[0].output_shapes == Shapes{shapes.back()});
    int64_t total = 0, trainable = 0, bytes = 0, input_bytes = 0, output_bytes = 0;
    in >> word >> total >> trainable >> bytes >> input_bytes >> output_bytes;
    CHECK(of.parameters == total);
    CHECK(of.trainable_parameters == trainable);
    CHECK(of.parameter_bytes == bytes);
    CHECK(of.input_bytes == input_bytes);
    CHECK(of.forward_backward_bytes == output_bytes);
  }
  CHECK(models == 50);
}

TEST_CASE("summary prints a table") {
  nn::Sequential model(nn::Linear(4, 300), nn::ReLU(), nn::Linear(300, 2));
  for (auto& parameter : model[0]->parameters()) parameter.requires_grad_(false);
  CHECK(text_of(summary(model, torch::zeros({8, 4}))) ==
        "Layer (name)  Output shape  Parameters\n"
        "--------------------------------------\n"
        "Sequential    [8, 2]                --\n"
        "  Linear (0)  [8, 300]         (1,500)\n"
        "  ReLU (1)    [8, 300]              --\n"
        "  Linear (2)  [8, 2]               602\n"
        "--------------------------------------\n"
        "parameters: 2,102, of which 602 trainable, 1,500 not\n"
        "megabytes: input 0.00, forward and backward 0.02, parameters 0.01, in all 0.03\n");
}

TEST_CASE("summary shows the output shape of a custom module but not of the modules in it") {
  Block block;
  const auto alone = summary(block, torch::zeros({3, 4}));
  REQUIRE(alone.rows.size() == 2);
  CHECK(alone.rows[0].class_name == "Block");
  CHECK(alone.rows[0].output_shapes == Shapes{{3, 4}});
  CHECK(alone.rows[0].parameters == 4);
  CHECK(alone.rows[1].name == "inner");
  CHECK(alone.rows[1].output_shapes.empty());
  CHECK(alone.parameters == 24);

  nn::Sequential model(nn::Linear(2, 4), Block(), nn::ReLU());
  const auto within = summary(model, torch::zeros({3, 2}));
  REQUIRE(within.rows.size() == 5);
  CHECK(within.rows[3].depth == 2);
  CHECK(within.rows[3].output_shapes.empty());
  CHECK(within.rows[4].output_shapes == Shapes{{3, 4}});
}

TEST_CASE("summary uses the same class names as repr") {
  nn::Sequential model(NamedImpl<nn::Linear>{}, Block());
  const auto of = summary(model, torch::zeros({3, 4}));
  CHECK(of.rows[1].class_name == "Named");
  CHECK(of.rows[2].class_name + "(" == sconce::repr(*model[1]).substr(0, 6));
}

TEST_CASE("summary handles several inputs and outputs") {
  Pair pair;
  const auto of = summary(pair, torch::zeros({2, 3}), torch::zeros({3}));
  CHECK(of.rows[0].output_shapes == Shapes{{2, 3}, {}});
  CHECK(of.input_bytes == 36);
  nn::LSTM lstm(3, 5);
  CHECK(summary(lstm, torch::zeros({7, 2, 3})).rows[0].output_shapes ==
        Shapes{{7, 2, 5}, {1, 2, 5}, {1, 2, 5}});
}

TEST_CASE("summary counts a module that occurs twice only once") {
  nn::Linear shared(4, 4);
  nn::Sequential model(shared, nn::ReLU(), shared);
  const auto of = summary(model, torch::zeros({2, 4}));
  CHECK(of.parameters == 20);
  CHECK_FALSE(of.rows[1].is_repeated);
  CHECK(of.rows[3].is_repeated);
  CHECK(of.rows[3].output_shapes == Shapes{{2, 4}});
  CHECK_THAT(text_of(of), ContainsSubstring("(repeated)"));
}

TEST_CASE("summary changes neither modes nor statistics nor the random number generator") {
  nn::Sequential model(nn::Linear(4, 4), nn::BatchNorm1d(4), nn::Dropout());
  model[1]->eval();
  const auto mean = model->buffers()[0].clone();
  torch::manual_seed(1);
  const auto expected = torch::rand({3});
  torch::manual_seed(1);
  summary(model, torch::ones({2, 4}));
  CHECK(torch::equal(torch::rand({3}), expected));
  CHECK(model->is_training());
  CHECK(model[0]->is_training());
  CHECK_FALSE(model[1]->is_training());
  CHECK(torch::equal(model->buffers()[0], mean));
  CHECK_FALSE(model->parameters()[0].grad().defined());
  CHECK_THROWS(summary(model, torch::ones({2, 5})));
  CHECK(model->is_training());
}

TEST_CASE("summary initializes lazy layers") {
  nn::Sequential model(sconce::nn::LazyLinear(3), nn::ReLU());
  const auto of = summary(model, torch::zeros({2, 4}));
  CHECK(of.parameters == 15);
  CHECK(of.rows[1].class_name == "Linear");
}

TEST_CASE("lazy layers that are initialized by summary draw their weights once") {
  torch::manual_seed(1);
  nn::Sequential first(sconce::nn::LazyLinear(3)), second(sconce::nn::LazyLinear(3));
  summary(first, torch::zeros({2, 4}));
  summary(second, torch::zeros({2, 4}));
  const auto drawn = torch::rand({3});

  torch::manual_seed(1);
  const nn::Linear like_first(4, 3), like_second(4, 3);
  CHECK(torch::equal(first->parameters()[0], like_first->weight));
  CHECK(torch::equal(second->parameters()[0], like_second->weight));
  CHECK(torch::equal(drawn, torch::rand({3})));
}

TEST_CASE("summary rejects inputs on another device and an empty model") {
  nn::Linear model(2, 2);
  CHECK_THROWS_WITH(
      summary(model, torch::zeros({1, 2}, torch::kMeta)),
      ContainsSubstring("sconce::summary: expected inputs on the model's device cpu, got one on "
                        "meta"));
  nn::Sequential empty;
  CHECK_THROWS_WITH(summary(empty, torch::zeros({1})), ContainsSubstring("an empty Sequential"));
}
