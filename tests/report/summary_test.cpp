#include "sconce/report/summary.hpp"

#include <torch/torch.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/lazy_conv_transpose.hpp"
#include "sconce/nn/transformer_model.hpp"
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

// Appends the module that has this name in the reference script.
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

// A module whose `forward` calls a given function, which runs the submodules.
struct CustomImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return run(x); }
  std::function<torch::Tensor(const torch::Tensor&)> run;
};
TORCH_MODULE(Custom);

Custom custom(const std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>& children,
              std::function<torch::Tensor(const torch::Tensor&)> run) {
  Custom model;
  for (const auto& child : children) model->register_module(child.first, child.second);
  model->run = std::move(run);
  return model;
}

// Returns the output shapes in the first row with the given name.
Shapes shape_of(const sconce::Summary& of, const std::string& name) {
  for (const auto& row : of.rows) {
    if (row.name == name) return row.output_shapes;
  }
  FAIL("no row " << name);
  return {};
}

std::string text_of(const sconce::Summary& of) {
  std::ostringstream out;
  out << of;
  return out.str();
}

// A list of layers, each with an input.
using LayerCases = std::vector<std::pair<nn::AnyModule, torch::Tensor>>;

// Checks that the summary shows the same shape for each layer in a custom module as in a
// Sequential. For a Sequential, the summary shows the shapes that the modules return.
void check_each_within_custom(const LayerCases& cases) {
  for (const auto& each : cases) {
    auto layer = each.first;
    nn::Sequential alone;
    alone->push_back(layer);
    const auto expected = summary(alone, each.second).rows[1].output_shapes;
    auto model = custom({{"layer", layer.ptr()}}, [&layer](const torch::Tensor& in) {
      layer.any_forward(in);
      return in;
    });
    INFO(sconce::repr(*model) << " gets " << each.second.sizes());
    CHECK_FALSE(expected.empty());
    CHECK(shape_of(summary(model, each.second), "layer") == expected);
  }
}

// Also checks the summary of the same Sequential inside a custom module. For layers that precede
// the first layer with tensors, the summary knows only the input shape of that first layer.
void check_within_custom(nn::Sequential& model, const torch::Tensor& input,
                         const std::vector<std::vector<int64_t>>& shapes, int64_t output_bytes) {
  auto outer =
      custom({{"net", model.ptr()}}, [&](const torch::Tensor& x) { return model->forward(x); });
  const auto of = summary(outer, input);
  bool begins = true;
  for (size_t i = 0; i < shapes.size(); ++i) {
    begins = begins && model[i]->parameters().empty();
    const bool is_next_plain = i + 1 == shapes.size() || model[i + 1]->parameters().empty();
    const bool is_known = !begins || !is_next_plain;
    CHECK(of.rows[i + 2].output_shapes == (is_known ? Shapes{shapes[i]} : Shapes{}));
  }
  CHECK(of.forward_backward_bytes == output_bytes);
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
    check_within_custom(model, input, shapes, output_bytes);
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

TEST_CASE("summary shows the output shapes of custom modules and their layers") {
  Block block;
  const auto alone = summary(block, torch::zeros({3, 4}));
  REQUIRE(alone.rows.size() == 2);
  CHECK(alone.rows[0].class_name == "Block");
  CHECK(alone.rows[0].output_shapes == Shapes{{3, 4}});
  CHECK(alone.rows[0].parameters == 4);
  CHECK(alone.rows[1].name == "inner");
  CHECK(alone.rows[1].output_shapes == Shapes{{3, 4}});
  CHECK(alone.parameters == 24);
  CHECK(alone.forward_backward_bytes == 2 * 48);

  nn::Sequential model(nn::Linear(2, 4), Block(), nn::ReLU());
  const auto within = summary(model, torch::zeros({3, 2}));
  REQUIRE(within.rows.size() == 5);
  CHECK(within.rows[3].depth == 2);
  CHECK(within.rows[3].output_shapes == Shapes{{3, 4}});
  CHECK(within.rows[4].output_shapes == Shapes{{3, 4}});
  CHECK(within.forward_backward_bytes == 4 * 48);
}

TEST_CASE("summary shows the output shape of each image and audio layer inside a custom module") {
  const auto sound = torch::zeros({2, 4, 9}), one_sound = torch::zeros({4, 9});
  const auto picture = torch::zeros({2, 4, 9, 7}), volume = torch::zeros({2, 4, 9, 7, 5});
  const auto has_affine = nn::InstanceNormOptions(4).affine(true);
  check_each_within_custom({
      {nn::AnyModule(nn::Conv1d(4, 6, 2)), sound},
      {nn::AnyModule(nn::Conv1d(4, 6, 2)), one_sound},
      {nn::AnyModule(nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(torch::kSame))), picture},
      {nn::AnyModule(
           nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(1).padding_mode(torch::kReflect))),
       picture},
      {nn::AnyModule(sconce::nn::LazyConv1d(6, 3)), sound},
      {nn::AnyModule(sconce::nn::LazyBatchNorm1d()), sound},
      {nn::AnyModule(sconce::nn::LazyConv2d(6, 3)), picture},
      {nn::AnyModule(sconce::nn::LazyConv3d(6, 3)), volume},
      {nn::AnyModule(nn::Conv3d(4, 6, 2)), volume},
      {nn::AnyModule(nn::ConvTranspose1d(4, 6, 2)), sound},
      {nn::AnyModule(nn::ConvTranspose2d(4, 6, 2)), picture},
      {nn::AnyModule(nn::ConvTranspose3d(4, 6, 2)), volume},
      {nn::AnyModule(sconce::nn::LazyConvTranspose1d(6, 2)), sound},
      {nn::AnyModule(sconce::nn::LazyConvTranspose2d(6, 2)), picture},
      {nn::AnyModule(sconce::nn::LazyConvTranspose3d(6, 2)), volume},
      {nn::AnyModule(nn::BatchNorm2d(4)), picture},
      {nn::AnyModule(nn::BatchNorm3d(4)), volume},
      {nn::AnyModule(sconce::nn::LazyBatchNorm2d()), picture},
      {nn::AnyModule(sconce::nn::LazyBatchNorm3d()), volume},
      {nn::AnyModule(nn::InstanceNorm1d(has_affine)), sound},
      {nn::AnyModule(nn::InstanceNorm2d(has_affine)), picture},
      {nn::AnyModule(nn::InstanceNorm3d(has_affine)), volume},
      {nn::AnyModule(nn::GroupNorm(2, 4)), picture},
      {nn::AnyModule(nn::PReLU()), picture},
  });
}

TEST_CASE("summary shows the output shape of each table and text layer inside a custom module") {
  namespace sn = sconce::nn;
  const auto x = torch::zeros({2, 4}), flat = torch::zeros({4}), sound = torch::zeros({2, 4, 9});
  const auto text = torch::zeros({3, 2, 4}), words = torch::zeros({2, 5}, torch::kLong);
  check_each_within_custom({
      {nn::AnyModule(nn::Linear(4, 6)), x},
      {nn::AnyModule(nn::Linear(4, 4)), text},
      {nn::AnyModule(nn::Linear(4, 6)), flat},
      {nn::AnyModule(nn::Linear(nn::LinearOptions(4, 6).bias(false))), x},
      {nn::AnyModule(sn::LazyLinear(6)), text},
      {nn::AnyModule(nn::Embedding(9, 6)), words},
      {nn::AnyModule(nn::Embedding(nn::EmbeddingOptions(9, 6).max_norm(1))), words},
      {nn::AnyModule(nn::EmbeddingBag(9, 6)), words},
      {nn::AnyModule(nn::BatchNorm1d(4)), x},
      {nn::AnyModule(nn::BatchNorm1d(nn::BatchNormOptions(4).affine(false))), sound},
      {nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4}))), text},
      {nn::AnyModule(sn::LayerNorm(sn::LayerNormOptions(4))), text},
      {nn::AnyModule(nn::RNN(4, 6)), text},
      {nn::AnyModule(nn::GRU(nn::GRUOptions(4, 6).batch_first(true).bidirectional(true))), text},
      {nn::AnyModule(nn::LSTM(nn::LSTMOptions(4, 6).num_layers(2))), text},
      {nn::AnyModule(nn::RNNCell(4, 6)), x},
      {nn::AnyModule(nn::GRUCell(4, 6)), x},
      {nn::AnyModule(nn::LSTMCell(4, 6)), x},
      {nn::AnyModule(nn::TransformerEncoderLayer(4, 2)), text},
      {nn::AnyModule(sn::TransformerEncoderLayer(4, 2)), text},
      {nn::AnyModule(nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2), 2)), text},
      {nn::AnyModule(sn::TransformerEncoder(
           sn::TransformerEncoderLayer(
               sn::TransformerLayerOptions(4, 2).batch_first(true).norm_first(true)),
           2)),
       text},
  });
}

TEST_CASE("summary shows the output shapes of layers with several inputs inside a custom module") {
  const auto x = torch::zeros({5, 2, 4}), memory = torch::zeros({3, 2, 4});
  const auto shapes_of = [&](auto layer, const auto& run) {
    auto model = custom({{"layer", layer.ptr()}}, [&](const torch::Tensor& in) {
      run(layer, in);
      return in;
    });
    return shape_of(summary(model, x), "layer");
  };
  const auto with_memory = [&](auto& layer, const torch::Tensor& in) { layer(in, memory); };
  const auto to_memory = [&](auto& layer, const torch::Tensor& in) { layer(in, memory, memory); };
  CHECK(shapes_of(nn::Bilinear(4, 4, 6), [](auto& layer, const torch::Tensor& in) {
          layer(in, in);
        }) == Shapes{{5, 2, 6}});
  CHECK(shapes_of(nn::MultiheadAttention(4, 2), to_memory) == Shapes{{5, 2, 4}});
  CHECK(shapes_of(sconce::nn::MultiheadAttention(4, 2), to_memory) == Shapes{{5, 2, 4}});
  CHECK(shapes_of(nn::TransformerDecoderLayer(4, 2), with_memory) == Shapes{{5, 2, 4}});
  CHECK(shapes_of(sconce::nn::TransformerDecoderLayer(4, 2), with_memory) == Shapes{{5, 2, 4}});
  CHECK(shapes_of(nn::TransformerDecoder(nn::TransformerDecoderLayer(4, 2), 1), with_memory) ==
        Shapes{{5, 2, 4}});
  const auto to_target = [&](auto& layer, const torch::Tensor& in) { layer(memory, in); };
  CHECK(shapes_of(
            sconce::nn::Transformer(
                sconce::nn::TransformerOptions(4, 2).num_encoder_layers(1).num_decoder_layers(1)),
            to_target) == Shapes{{5, 2, 4}});
}

TEST_CASE("summary omits output shapes that cannot be inferred from any operator") {
  nn::Linear linear(4, 4), idle(4, 4);
  nn::ReLU relu;
  nn::InstanceNorm1d norm(nn::InstanceNormOptions(4).affine(true));
  sconce::nn::MultiheadAttention attention(4, 2);
  Block block;
  auto model = custom({{"linear", linear.ptr()},
                       {"idle", idle.ptr()},
                       {"relu", relu.ptr()},
                       {"norm", norm.ptr()},
                       {"attention", attention.ptr()},
                       {"block", block.ptr()}},
                      [=](const torch::Tensor& x) mutable {
                        const auto y = relu(linear(x));
                        norm(y);  // without a batch
                        attention(y, y, y);
                        // Other uses of a layer's tensors do not count as runs of that layer.
                        return torch::matmul(block(y), idle->weight) + idle->bias.sum();
                      });
  const auto of = summary(model, torch::zeros({4, 4}));
  CHECK(shape_of(of, "linear") == Shapes{{4, 4}});
  for (const auto* const name : {"idle", "relu", "norm", "attention", "block"}) {
    INFO(name);
    CHECK(shape_of(of, name).empty());
  }
  CHECK(shape_of(of, "inner") == Shapes{{4, 4}});
}

TEST_CASE("summary shows the output shapes in a residual block, even for uninitialized layers") {
  sconce::nn::LazyLinear wide(8);
  nn::Linear narrow(8, 4);
  nn::LayerNorm norm(nn::LayerNormOptions({4}));
  auto model = custom({{"wide", wide.ptr()}, {"narrow", narrow.ptr()}, {"norm", norm.ptr()}},
                      [&](const torch::Tensor& x) {
                        return norm(x + narrow(torch::relu(wide->forward(x)))).mean(1);
                      });
  const auto of = summary(model, torch::zeros({3, 2, 4}));
  CHECK(of.rows[0].output_shapes == Shapes{{3, 4}});
  CHECK(shape_of(of, "wide") == Shapes{{3, 2, 8}});
  CHECK(shape_of(of, "narrow") == Shapes{{3, 2, 4}});
  CHECK(shape_of(of, "norm") == Shapes{{3, 2, 4}});
}

TEST_CASE(
    "summary shows no output shape for a subclass of a layer, because the subclass may change the "
    "shape") {
  struct PooledImpl : nn::LinearImpl {
    using nn::LinearImpl::LinearImpl;
    torch::Tensor forward(const torch::Tensor& x) { return nn::LinearImpl::forward(x).mean(1); }
  };
  const auto pooled = std::make_shared<PooledImpl>(4, 6);
  auto model =
      custom({{"pooled", pooled}}, [&](const torch::Tensor& x) { return pooled->forward(x); });
  CHECK(shape_of(summary(model, torch::zeros({2, 3, 4})), "pooled").empty());
}

TEST_CASE("if a layer runs twice, summary shows its last output shape and counts both outputs") {
  nn::Linear linear(4, 6);
  auto model =
      custom({{"linear", linear.ptr()}, {"again", linear.ptr()}}, [&](const torch::Tensor& x) {
        linear(x);
        return linear(x.slice(0, 0, 2));
      });
  const auto of = summary(model, torch::zeros({5, 4}));
  CHECK(shape_of(of, "linear") == Shapes{{2, 6}});
  CHECK(shape_of(of, "again") == Shapes{{2, 6}});
  CHECK(of.forward_backward_bytes == 2 * 4 * 6 * (5 + 2));
}

TEST_CASE("if layers share a weight, summary distinguishes the layers by class") {
  nn::Embedding words(9, 4);
  nn::Linear scores(nn::LinearOptions(4, 9).bias(false));
  scores->weight.set_data(words->weight);
  auto model = custom({{"words", words.ptr()}, {"scores", scores.ptr()}},
                      [&](const torch::Tensor& x) { return scores(words(x)); });
  const auto of = summary(model, torch::zeros({2, 3}, torch::kLong));
  CHECK(shape_of(of, "words") == Shapes{{2, 3, 4}});
  CHECK(shape_of(of, "scores") == Shapes{{2, 3, 9}});
}

TEST_CASE(
    "if two layers of the same class share a weight, summary shows the output shape only for the "
    "first layer") {
  nn::Linear first(4, 4), second(4, 4);
  second->weight.set_data(first->weight);
  auto model = custom({{"first", first.ptr()}, {"second", second.ptr()}},
                      [&](const torch::Tensor& x) { return second(x); });
  const auto of = summary(model, torch::zeros({2, 4}));
  CHECK(shape_of(of, "first") == Shapes{{2, 4}});
  CHECK(shape_of(of, "second").empty());
}

TEST_CASE("summary shows no output shape for a layer that receives a packed sequence") {
  nn::GRU gru(4, 6);
  auto model = custom({{"gru", gru.ptr()}}, [&](const torch::Tensor& x) {
    const auto lengths = torch::tensor({3, 2});
    gru->forward_with_packed_input(nn::utils::rnn::pack_padded_sequence(x, lengths));
    return x;
  });
  CHECK(shape_of(summary(model, torch::zeros({3, 2, 4})), "gru").empty());
}

TEST_CASE(
    "summary shows shapes in a Sequential inside a custom module, even for layers without "
    "parameters") {
  nn::Sequential net(nn::Conv2d(3, 4, 3), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                     nn::Dropout(), nn::Linear(36, 5), nn::Softmax(1));
  nn::Sequential head(nn::Tanh(), nn::Flatten(), nn::Linear(5, 4), Block());
  auto model = custom({{"net", net.ptr()}, {"head", head.ptr()}},
                      [&](const torch::Tensor& x) { return head->forward(net->forward(x)).sum(); });
  const std::vector<Shapes> expected = {{{}},
                                        {{2, 5}},
                                        {{2, 4, 6, 6}},
                                        {{2, 4, 6, 6}},
                                        {{2, 4, 3, 3}},
                                        {{2, 36}},
                                        {{2, 36}},
                                        {{2, 5}},
                                        {{2, 5}},
                                        {},
                                        {},
                                        {{2, 5}},
                                        {{2, 4}},
                                        {},
                                        {{2, 4}}};
  const auto of = summary(model, torch::zeros({2, 3, 8, 8}));
  REQUIRE(of.rows.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("row " << i << ": " << of.rows[i].class_name);
    CHECK(of.rows[i].output_shapes == expected[i]);
  }
}

TEST_CASE(
    "summary omits the output shape of a layer in a Sequential if the next layer received a "
    "different shape") {
  nn::Sequential net(nn::Linear(4, 6), nn::ReLU(), nn::Linear(6, 5), Block());
  auto model = custom({{"net", net.ptr()}}, [&](const torch::Tensor& x) {
    const auto y = net[0]->as<nn::Linear>()->forward(x);
    return net[2]->as<nn::Linear>()->forward(y.unsqueeze(0));
  });
  const auto of = summary(model, torch::zeros({2, 4}));
  CHECK(shape_of(of, "0") == Shapes{{2, 6}});
  CHECK(shape_of(of, "1").empty());
  CHECK(shape_of(of, "2") == Shapes{{1, 2, 5}});
  CHECK(shape_of(of, "net").empty());
}

TEST_CASE("summary uses the same class names as repr") {
  nn::Sequential model(NamedImpl<nn::Linear>{}, Block());
  const auto of = summary(model, torch::zeros({3, 4}));
  CHECK(of.rows[1].class_name == "Named");
  CHECK(of.rows[2].class_name + "(" == sconce::repr(*model[1]).substr(0, 6));
}

TEST_CASE("summary supports models with several inputs and outputs") {
  Pair pair;
  const auto of = summary(pair, torch::zeros({2, 3}), torch::zeros({3}));
  CHECK(of.rows[0].output_shapes == Shapes{{2, 3}, {}});
  CHECK(of.input_bytes == 36);
  nn::LSTM lstm(3, 5);
  CHECK(summary(lstm, torch::zeros({7, 2, 3})).rows[0].output_shapes ==
        Shapes{{7, 2, 5}, {1, 2, 5}, {1, 2, 5}});
}

TEST_CASE("if a module occurs twice, summary counts it only once") {
  nn::Linear shared(4, 4);
  nn::Sequential model(shared, nn::ReLU(), shared);
  const auto of = summary(model, torch::zeros({2, 4}));
  CHECK(of.parameters == 20);
  CHECK_FALSE(of.rows[1].is_repeated);
  CHECK(of.rows[3].is_repeated);
  CHECK(of.rows[3].output_shapes == Shapes{{2, 4}});
  CHECK_THAT(text_of(of), ContainsSubstring("(repeated)"));
}

TEST_CASE("summary does not change modes, statistics, or the random number generator") {
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

TEST_CASE("lazy layers that summary initializes generate their random weights only once") {
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

TEST_CASE("summary rejects an empty model and inputs on a different device") {
  nn::Linear model(2, 2);
  CHECK_THROWS_WITH(
      summary(model, torch::zeros({1, 2}, torch::kMeta)),
      ContainsSubstring("sconce::summary: expected inputs on the model's device cpu, got one on "
                        "meta"));
  nn::Sequential empty;
  CHECK_THROWS_WITH(summary(empty, torch::zeros({1})), ContainsSubstring("an empty Sequential"));
}
