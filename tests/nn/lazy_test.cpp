#include "sconce/nn/lazy.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/lazy_conv_transpose.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace sconce::nn;
using sconce::test::error_of;
using torch::Tensor;

namespace {

using NamedTensors = torch::OrderedDict<std::string, Tensor>;

Tensor ramp(at::IntArrayRef shape, torch::Dtype dtype = torch::kFloat) {
  return torch::linspace(-1, 1, c10::multiply_integers(shape), dtype).reshape(shape);
}

bool bitwise_equal(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto equal = [](const NamedTensors& x, const NamedTensors& y) {
    bool same = x.size() == y.size();
    for (const auto& item : x) {
      const auto* other = y.find(item.key());
      if (other == nullptr || item.value().defined() != other->defined()) return false;
      if (item.value().defined()) same = same && item.value().equal(*other);
    }
    return same;
  };
  return equal(a.named_parameters(), b.named_parameters()) &&
         equal(a.named_buffers(), b.named_buffers());
}

template <class M>
std::string saved(const M& module) {
  std::ostringstream out;
  torch::save(module, out);
  return out.str();
}

template <class M>
void load(M& module, const std::string& bytes) {
  std::istringstream in(bytes);
  torch::load(module, in);
}

// Calls `test(layer, input, twin)` for each kind of layer. `twin` is the corresponding non-lazy
// layer.
template <class F>
void for_each_layer(const F& test) {
  namespace nn = torch::nn;
  test(LazyLinear(3), ramp({2, 4}), nn::Linear(4, 3));
  test(LazyConv1d(LazyConv1dOptions(4, 3).groups(2)), ramp({2, 4, 5}),
       nn::Conv1d(nn::Conv1dOptions(4, 4, 3).groups(2)));
  test(LazyConv2d(LazyConv2dOptions(2, {3, 2}).padding(1)), ramp({2, 3, 4, 5}),
       nn::Conv2d(nn::Conv2dOptions(3, 2, {3, 2}).padding(1)));
  test(LazyConv3d(LazyConv3dOptions(2, 2).stride(2)), ramp({1, 2, 3, 4, 5}),
       nn::Conv3d(nn::Conv3dOptions(2, 2, 2).stride(2)));
  test(LazyBatchNorm1d(), ramp({4, 3}), nn::BatchNorm1d(3));
  test(LazyBatchNorm2d(LazyBatchNorm2dOptions().momentum(std::nullopt)), ramp({2, 3, 4, 5}),
       nn::BatchNorm2d(nn::BatchNorm2dOptions(3).momentum(std::nullopt)));
  test(LazyBatchNorm3d(), ramp({2, 3, 2, 2, 3}), nn::BatchNorm3d(3));
  test(LazyConvTranspose1d(LazyConvTranspose1dOptions(4, 3).groups(2)), ramp({2, 6, 5}),
       nn::ConvTranspose1d(nn::ConvTranspose1dOptions(6, 4, 3).groups(2)));
  test(LazyConvTranspose2d(LazyConvTranspose2dOptions(2, {3, 2}).stride(2).output_padding(1)),
       ramp({2, 3, 4, 5}),
       nn::ConvTranspose2d(nn::ConvTranspose2dOptions(3, 2, {3, 2}).stride(2).output_padding(1)));
  test(LazyConvTranspose3d(2, 2), ramp({1, 2, 2, 3, 2}), nn::ConvTranspose3d(2, 2, 2));
}

// A custom module with two lazy layers. `Net` contains this module and another lazy layer, so lazy
// layers occur on two levels.
struct BlockImpl : torch::nn::Cloneable<BlockImpl> {
  BlockImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", LazyLinear(5));
    norm = register_module("norm", LazyBatchNorm1d());
  }
  Tensor forward(const Tensor& X) { return norm->forward(fc->forward(X)); }
  LazyLinear fc = nullptr;
  LazyBatchNorm1d norm = nullptr;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    block = register_module("block", Block());
    head = register_module("head", LazyLinear(LazyLinearOptions(2).bias(false)));
  }
  Tensor forward(const Tensor& X) { return head->forward(block->forward(X).relu()); }
  Block block = nullptr;
  LazyLinear head = nullptr;
};
TORCH_MODULE(Net);

torch::nn::Sequential lazy_cnn() {
  return torch::nn::Sequential(LazyConv2d(LazyConv2dOptions(4, 3).padding(1)), LazyBatchNorm2d(),
                               torch::nn::ReLU(), torch::nn::Flatten(), LazyLinear(6),
                               LazyBatchNorm1d(), LazyLinear(2));
}

struct Line {  // a line of reference/lazy.txt: layer, on, bits, key, sizes, values
  std::string layer, key, sizes;
  bool on;
  int bits;
  std::vector<double> values;
};

std::vector<Line> reference() {
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/lazy.txt");
  REQUIRE(file);
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream in(text);
    Line line;
    std::string word;
    in >> word;
    if (word != "tensor") continue;
    in >> line.layer >> line.on >> line.bits >> line.key >> line.sizes;
    while (in >> word) line.values.push_back(std::stod(word));
    lines.push_back(line);
  }
  return lines;
}

// Checks the reference case from Python with the given name. Output values are compared within
// Python's tolerance, and all other values are compared exactly.
template <class M>
void check_reference(M layer, const std::string& name, bool on, int bits, const Tensor& input) {
  torch::manual_seed(7);
  layer->to(input.scalar_type());
  const auto output = layer->forward(input);
  const auto next = torch::rand(1);
  const auto parameters = layer->named_parameters();
  const auto buffers = layer->named_buffers();
  int lines = 0;
  for (const auto& line : reference()) {
    if (line.layer != name || line.on != on || line.bits != bits) continue;
    INFO(name << ' ' << on << ' ' << bits << ' ' << line.key);
    ++lines;
    Tensor ours = line.key == "output" ? output : next;
    if (const auto* found = parameters.find(line.key)) ours = *found;
    if (const auto* found = buffers.find(line.key)) ours = *found;
    std::ostringstream sizes;
    for (const auto size : ours.sizes()) sizes << (sizes.tellp() ? "," : "") << size;
    CHECK((ours.dim() ? sizes.str() : "-") == line.sizes);
    const auto theirs = torch::tensor(line.values, torch::kDouble);
    const auto values = ours.detach().to(torch::kDouble).flatten();
    const bool computed = line.key == "output" || line.key.starts_with("running_");
    CHECK((computed ? torch::allclose(values, theirs, 1.3e-6, 1e-5) : values.equal(theirs)));
  }
  CHECK(lines >= 3);
}

// A random layer, represented by the Python code that creates it and by a C++ layer.
struct Drawn {
  std::string python = {};  // the layer and the shape of its input
  std::shared_ptr<torch::nn::Module> module = {};
  std::function<Tensor(const Tensor&)> forward = {};
  std::vector<int64_t> shape = {};
};

template <class Layer>
Drawn drawn(const std::string& python, Layer layer, const std::vector<int64_t>& shape) {
  return {c10::str(python, "|(", c10::Join(", ", shape), ")"), layer.ptr(),
          [layer](const Tensor& x) mutable { return layer->forward(x); }, shape};
}

// Draws the shape of a batch with the given number of channels and D additional dimensions.
std::vector<int64_t> draw_shape(std::mt19937& dice, int64_t channels, int64_t D) {
  std::vector<int64_t> shape = {1 + static_cast<int64_t>(dice() % 3), channels};
  for (int64_t i = 0; i < D; ++i) shape.push_back(2 + static_cast<int64_t>(dice() % 4));
  return shape;
}

template <class Layer, size_t D>
Drawn draw_transposed(std::mt19937& dice) {
  const auto below = [&dice](int64_t limit) { return static_cast<int64_t>(dice() % limit); };
  const auto draw = [&](int64_t least, int64_t limit) {
    std::vector<int64_t> all;
    for (size_t i = 0; i < D; ++i) all.push_back(least + below(limit));
    return all;
  };
  const int64_t groups = 1 + below(2), out = groups * (1 + below(3)), in = groups * (1 + below(3));
  const bool bias = below(3) != 0;
  const auto kernel = draw(1, 3), stride = draw(2, 2), padding = draw(0, 2), dilation = draw(1, 2);
  const auto output_padding = draw(0, 2);  // must be smaller than the stride
  const auto options = LazyConvTransposeOptions<D>(out, kernel)
                           .stride(stride)
                           .padding(padding)
                           .output_padding(output_padding)
                           .groups(groups)
                           .bias(bias)
                           .dilation(dilation);
  const auto list = [](const auto& all) { return c10::str("(", c10::Join(", ", all), ",)"); };
  const auto python = c10::str("nn.LazyConvTranspose", D, "d(", out, ", ", list(kernel), ", ",
                               list(stride), ", ", list(padding), ", ", list(output_padding), ", ",
                               groups, ", ", bias ? "True" : "False", ", ", list(dilation), ")");
  auto shape = draw_shape(dice, in, D);
  for (size_t i = 2; i < shape.size(); ++i) shape[i] += 3;  // so that padding leaves something
  return drawn(python, Layer(options), shape);
}

Drawn draw_norm(std::mt19937& dice) {
  const bool affine = dice() % 2 == 0, tracks = dice() % 2 == 0, is_mean = dice() % 3 == 0;
  const double eps = dice() % 2 == 0 ? 1e-5 : 1e-3;
  auto options = LazyBatchNorm3dOptions().eps(eps).affine(affine).track_running_stats(tracks);
  if (is_mean) options.momentum(std::nullopt);
  const auto flag = [](bool value) { return value ? "True" : "False"; };
  const auto python = c10::str("nn.LazyBatchNorm3d(", eps, ", ", is_mean ? "None" : "0.1", ", ",
                               flag(affine), ", ", flag(tracks), ")");
  return drawn(python, LazyBatchNorm3d(options),
               draw_shape(dice, 1 + static_cast<int64_t>(dice() % 5), 3));
}

Drawn draw_layer(size_t number) {
  std::mt19937 dice(static_cast<uint32_t>(number));
  switch (number % 4) {
    case 0:
      return draw_transposed<LazyConvTranspose1d, 1>(dice);
    case 1:
      return draw_transposed<LazyConvTranspose2d, 2>(dice);
    case 2:
      return draw_transposed<LazyConvTranspose3d, 3>(dice);
    default:
      return draw_norm(dice);
  }
}

void compare_lazy_layers(size_t count) {
  const sconce::test::TempDir folder;
  {
    std::ofstream cases(folder.path() / "cases");
    for (size_t i = 0; i < count; ++i) cases << draw_layer(i).python << '\n';
  }
  sconce::test::ask_python(folder, "lazy.py", "random");
  const auto all = sconce::io::load_torch(folder.path() / "random");
  REQUIRE(all.toListRef().size() == count);
  const auto near = [](const Tensor& a, const Tensor& b) {
    return a.sizes() == b.sizes() && torch::allclose(a, b, 1.3e-6, 1e-5);
  };
  for (size_t i = 0; i < count; ++i) {
    torch::manual_seed(i);
    const auto layer = draw_layer(i);
    INFO(i << ": " << layer.python);
    const auto X = torch::randn(layer.shape, torch::requires_grad());
    const auto Y = layer.forward(X);
    Y.square().sum().backward();
    const auto python = all.toListRef()[i].toGenericDict();
    CHECK(torch::rand(1).equal(python.at("next").toTensor()));
    CHECK(near(Y, python.at("output").toTensor()));
    const auto state = state_dict(*layer.module);
    const auto theirs = python.at("state").toGenericDict();
    REQUIRE(state.size() == theirs.size());
    for (const auto& item : state) {
      const auto expected = theirs.at(item.key()).toTensor();
      const bool is_computed = item.key().starts_with("running_");
      CHECK((is_computed ? near(item.value(), expected) : item.value().equal(expected)));
    }
    auto gradients = std::vector{X.grad()};
    for (const auto& parameter : layer.module->parameters()) gradients.push_back(parameter.grad());
    const auto expected = python.at("gradients").toListRef();
    REQUIRE(gradients.size() == expected.size());
    for (size_t j = 0; j < gradients.size(); ++j) {
      CHECK(torch::allclose(gradients[j], expected[j].toTensor(), 1e-4, 1e-4));
    }
  }
}

}  // namespace

TEST_CASE(
    "lazy layers draw the same initial values as in Python and advance the generator by the same "
    "amount") {
  const bool on = GENERATE(true, false);
  const int bits = GENERATE(32, 64);
  const auto dtype = bits == 32 ? torch::kFloat : torch::kDouble;
  check_reference(LazyLinear(LazyLinearOptions(3).bias(on)), "LazyLinear", on, bits,
                  ramp({2, 4}, dtype));
  check_reference(LazyConv1d(LazyConv1dOptions(4, 3).groups(2).bias(on)), "LazyConv1d", on, bits,
                  ramp({2, 4, 5}, dtype));
  check_reference(LazyConv2d(LazyConv2dOptions(2, {3, 2}).padding(1).bias(on)), "LazyConv2d", on,
                  bits, ramp({2, 3, 4, 5}, dtype));
  check_reference(LazyConv3d(LazyConv3dOptions(2, 2).stride(2).bias(on)), "LazyConv3d", on, bits,
                  ramp({1, 2, 3, 4, 5}, dtype));
  check_reference(LazyBatchNorm1d(LazyBatchNorm1dOptions().affine(on)), "LazyBatchNorm1d", on, bits,
                  ramp({4, 3}, dtype));
  check_reference(LazyBatchNorm2d(LazyBatchNorm2dOptions().momentum(std::nullopt).affine(on)),
                  "LazyBatchNorm2d", on, bits, ramp({2, 3, 4, 5}, dtype));
  check_reference(LazyBatchNorm3d(LazyBatchNorm3dOptions().affine(on)), "LazyBatchNorm3d", on, bits,
                  ramp({2, 3, 2, 2, 3}, dtype));
  check_reference(LazyConvTranspose1d(LazyConvTranspose1dOptions(4, 3).groups(2).bias(on)),
                  "LazyConvTranspose1d", on, bits, ramp({2, 4, 5}, dtype));
  const auto two = LazyConvTranspose2dOptions(2, {3, 2}).stride(2).padding(1).output_padding(1);
  check_reference(LazyConvTranspose2d(LazyConvTranspose2dOptions(two).bias(on)),
                  "LazyConvTranspose2d", on, bits, ramp({2, 3, 4, 5}, dtype));
  check_reference(LazyConvTranspose3d(LazyConvTranspose3dOptions(2, 2).stride(2).bias(on)),
                  "LazyConvTranspose3d", on, bits, ramp({1, 2, 2, 3, 2}, dtype));
}

TEST_CASE(
    "random LazyConvTranspose1d/2d/3d and LazyBatchNorm3d layers produce the same values and "
    "gradients as in Python",
    "[python]") {
  compare_lazy_layers(24);
}

TEST_CASE("200 random lazy layers of each kind produce the same values and gradients as in Python",
          "[.][slow]") {
  compare_lazy_layers(800);
}

TEST_CASE(
    "a lazy transposed convolution pads its output to a given output_size and works in a "
    "Sequential") {
  LazyConvTranspose2d layer(LazyConvTranspose2dOptions(2, 3).stride(2));
  const auto X = ramp({1, 3, 4, 4});
  CHECK(layer(X, at::IntArrayRef{10, 9}).sizes() == at::IntArrayRef{1, 2, 10, 9});
  CHECK(layer(X).sizes() == at::IntArrayRef{1, 2, 9, 9});
  torch::nn::Sequential net(LazyConvTranspose2d(2, 3));
  CHECK(net->forward(X).sizes() == at::IntArrayRef{1, 2, 6, 6});
}

TEST_CASE("lazy layers have the same defaults as in Python") {
  std::map<std::string, std::string> ours;
  const auto text = [](auto value) { return (std::ostringstream() << value).str(); };
  const auto flag = [](bool value) { return value ? "True" : "False"; };
  ours["LazyLinear bias"] = flag(LazyLinearOptions(1).bias());
  const auto conv = [&](const std::string& name, const auto& o) {
    using padding_t = std::decay_t<decltype(*o.stride())>;
    using Array = std::decay_t<decltype(o.stride())>;
    ours[name + " stride"] = *o.stride() == padding_t(*Array(1)) ? "1" : "?";
    ours[name + " padding"] = *std::get<Array>(o.padding()) == *Array(0) ? "0" : "?";
    ours[name + " dilation"] = *o.dilation() == *Array(1) ? "1" : "?";
    ours[name + " groups"] = text(o.groups());
    ours[name + " bias"] = flag(o.bias());
    ours[name + " padding_mode"] =
        std::holds_alternative<torch::enumtype::kZeros>(o.padding_mode()) ? "zeros" : "?";
  };
  conv("LazyConv1d", LazyConv1dOptions(1, 1));
  conv("LazyConv2d", LazyConv2dOptions(1, 1));
  conv("LazyConv3d", LazyConv3dOptions(1, 1));
  const auto transposed = [&](const std::string& name, const auto& o) {
    using Array = std::decay_t<decltype(o.stride())>;
    const auto number = [](const auto& array, int64_t value) {
      return *array == *Array(value) ? std::to_string(value) : "?";
    };
    ours[name + " stride"] = number(o.stride(), 1);
    ours[name + " padding"] = number(o.padding(), 0);
    ours[name + " output_padding"] = number(o.output_padding(), 0);
    ours[name + " dilation"] = number(o.dilation(), 1);
    ours[name + " groups"] = text(o.groups());
    ours[name + " bias"] = flag(o.bias());
    ours[name + " padding_mode"] =
        std::holds_alternative<torch::enumtype::kZeros>(o.padding_mode()) ? "zeros" : "?";
  };
  transposed("LazyConvTranspose1d", LazyConvTranspose1dOptions(1, 1));
  transposed("LazyConvTranspose2d", LazyConvTranspose2dOptions(1, 1));
  transposed("LazyConvTranspose3d", LazyConvTranspose3dOptions(1, 1));
  for (const std::string name : {"LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"}) {
    const LazyBatchNormOptions o;
    ours[name + " eps"] = text(o.eps());
    ours[name + " momentum"] = text(o.momentum().value());
    ours[name + " affine"] = flag(o.affine());
    ours[name + " track_running_stats"] = flag(o.track_running_stats());
    ours[name + " bias"] = "True";  // LibTorch has no batch norm without a bias
  }
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/lazy.txt");
  size_t found = 0;
  for (std::string kind, layer, name, value; file >> kind && kind == "default"; ++found) {
    file >> layer >> name >> value;
    INFO(layer << ' ' << name);
    CHECK(ours[layer + ' ' + name] == value);
  }
  CHECK(found == ours.size());
}

TEST_CASE(
    "an uninitialized layer contains placeholders until its first forward pass creates the real "
    "layer") {
  for_each_layer([](auto layer, const Tensor& X, auto twin) {
    INFO(layer->layer_name());
    CHECK_FALSE(layer->is_initialized());
    CHECK(has_uninitialized_params(*layer));
    CHECK(layer->layer_name().starts_with("Lazy"));
    CHECK(layer->weight.sizes() == at::IntArrayRef{0});
    CHECK(layer->bias.sizes() == at::IntArrayRef{0});
    layer->reset_parameters();  // has nothing to reset
    const auto weight = layer->weight;

    torch::manual_seed(3);
    const auto ours = layer(X);
    torch::manual_seed(3);
    twin->reset_parameters();
    CHECK(ours.equal(twin(X)));
    CHECK(layer->is_initialized());
    CHECK(bitwise_equal(*layer, *twin));
    CHECK(weight.is_same(layer->weight));
    CHECK(weight.is_same(layer->parameters()[0]));
    CHECK("Lazy" + layer->layer_name() + "Impl" == layer->name().substr(12));
    std::ostringstream printed, expected;
    printed << *layer;
    expected << *twin;
    CHECK(printed.str() == expected.str());
    layer->reset_parameters();
    CHECK(layer->weight.sizes() == twin->weight.sizes());
  });
}

TEST_CASE("streaming an uninitialized layer prints the same text as repr") {
  for_each_layer([](auto layer, const Tensor&, auto) {
    std::ostringstream printed;
    printed << *layer;
    CHECK(printed.str() == sconce::repr(*layer));
  });
}

TEST_CASE("a lazy layer's accessors throw until the layer is initialized") {
  LazyLinear linear(LazyLinearOptions(1));
  CHECK(error_of([&] { linear->in_features(); }) ==
        "sconce::nn::LazyLinear::in_features: expected an initialized layer, but "
        "LazyLinear(in_features=0, out_features=1, bias=True) is uninitialized; to initialize the "
        "layer, run forward once or load a full state");
  LazyConv2d conv(2, 3);
  CHECK_THROWS_WITH(conv->in_channels(),
                    ContainsSubstring("LazyConv2d::in_channels") && ContainsSubstring("uninit"));
  LazyBatchNorm2d norm;
  CHECK_THROWS_WITH(norm->num_features(), ContainsSubstring("LazyBatchNorm2d::num_features"));
  linear(ramp({2, 4}));
  conv(ramp({3, 4, 4}));  // unbatched
  norm(ramp({2, 5, 2, 2}));
  CHECK(linear->in_features() == 4);
  CHECK(conv->in_channels() == 3);
  CHECK(norm->num_features() == 5);
}

TEST_CASE(
    "an optimizer created before a lazy model's first forward pass trains as if no layer were "
    "lazy") {
  const bool adam = GENERATE(true, false);
  const auto losses = [&](auto net, const auto& prepare) {
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    const auto build = [&] {
      if (adam) {
        optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), 0.01);
      } else {
        optimizer = std::make_unique<torch::optim::SGD>(
            net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      }
    };
    prepare(net, build);
    std::vector<float> found;
    const auto X = ramp({8, 3, 4, 4}).sin();
    for (int step = 0; step < 5; ++step) {
      optimizer->zero_grad();
      auto loss = (net->forward(X) - 1).square().mean();
      loss.backward();
      optimizer->step();
      found.push_back(loss.template item<float>());
    }
    return found;
  };
  auto lazy = lazy_cnn();
  const auto ours = losses(lazy, [](auto net, const auto& build) {
    build();
    torch::manual_seed(0);
    net->forward(ramp({2, 3, 4, 4}));
  });
  torch::manual_seed(0);
  namespace nn = torch::nn;
  nn::Conv2d conv(nn::Conv2dOptions(3, 4, 3).padding(1));  // the order matters: both draw
  nn::Linear hidden(64, 6);
  nn::Linear out(6, 2);
  nn::Sequential real(conv, nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(), hidden,
                      nn::BatchNorm1d(6), out);
  const auto theirs = losses(real, [](auto net, const auto& build) {
    net->forward(ramp({2, 3, 4, 4}));
    build();
  });
  CHECK(ours == theirs);
  CHECK(ours.back() < ours.front());
  CHECK(bitwise_equal(*lazy, *real));
}

TEST_CASE("step and zero_grad have no effect before a lazy layer's first forward pass") {
  LazyLinear layer(2);
  torch::optim::SGD sgd(layer->parameters(), 0.1);
  sgd.zero_grad();
  sgd.step();
  CHECK_FALSE(layer->is_initialized());
  layer(ramp({2, 3})).sum().backward();
  const auto before = layer->weight.detach().clone();
  sgd.step();
  CHECK_FALSE(layer->weight.equal(before));
}

TEST_CASE(
    "the first forward pass initializes a lazy layer in any grad mode, and the parameters remain "
    "trainable") {
  const int mode = GENERATE(0, 1, 2);
  LazyLinear layer(2);
  LazyLinear frozen(2);
  frozen->weight.requires_grad_(false);
  if (mode == 0) {
    const torch::NoGradGuard no_grad;
    frozen(layer(ramp({2, 3})));
  } else if (mode == 1) {
    const c10::InferenceMode inference;
    frozen(layer(ramp({2, 3})));
  } else {
    frozen(layer(ramp({2, 3})));
  }
  CHECK(torch::GradMode::is_enabled());
  CHECK(layer->weight.requires_grad());
  CHECK(layer->weight.is_leaf());
  CHECK_FALSE(frozen->weight.requires_grad());
  CHECK(frozen->bias.requires_grad());
  torch::optim::SGD sgd(layer->parameters(), 0.1);
  frozen(layer(ramp({2, 3}))).sum().backward();
  sgd.step();
  CHECK(layer->weight.grad().defined());
  CHECK_FALSE(frozen->weight.grad().defined());
}

TEST_CASE("calling to() before the first forward pass sets a lazy layer's device and dtype") {
  for_each_layer([](auto layer, const Tensor& X, auto) {
    layer->to(torch::kDouble);
    CHECK_THROWS(layer(X.to(torch::kInt)));  // the wrong type initializes the layer and then fails
    CHECK(layer->is_initialized());
    CHECK(layer->weight.scalar_type() == torch::kDouble);
    CHECK(layer(X.to(torch::kDouble)).scalar_type() == torch::kDouble);
  });
}

TEST_CASE("a lazy layer moved to a GPU draws its values from the GPU's generator", "[gpu]") {
  sconce::test::require_gpu();
  LazyLinear layer(3);
  layer->to(sconce::gpu());
  torch::manual_seed(5);
  layer(ramp({2, 4}).to(sconce::gpu()));
  torch::nn::Linear twin(4, 3);
  twin->to(sconce::gpu());
  torch::manual_seed(5);
  twin->reset_parameters();
  CHECK(bitwise_equal(*layer, *twin));
}

TEST_CASE(
    "a clone of a lazy layer has the same initialization state and is independent of the layer") {
  for_each_layer([](auto layer, const Tensor& X, auto) {
    using Impl = std::decay_t<decltype(*layer)>;
    layer->to(torch::kDouble);
    layer->eval();
    layer->weight.requires_grad_(false);
    torch::manual_seed(1);
    const auto before = std::dynamic_pointer_cast<Impl>(layer->clone());
    REQUIRE(before);
    CHECK_FALSE(before->is_initialized());
    CHECK_FALSE(before->is_training());
    CHECK_FALSE(before->weight.requires_grad());
    CHECK(before->weight.scalar_type() == torch::kDouble);

    layer->train();
    const auto Y = layer(X.to(torch::kDouble));
    CHECK_FALSE(before->is_initialized());
    torch::manual_seed(1);
    before->train();
    CHECK(before->forward(X.to(torch::kDouble)).equal(Y));  // so the first clone drew no numbers

    const auto after = std::dynamic_pointer_cast<Impl>(layer->clone());
    REQUIRE(after);
    CHECK(after->is_initialized());
    CHECK(bitwise_equal(*after, *layer));
    const torch::NoGradGuard no_grad;
    layer->weight.add_(1);
    CHECK_FALSE(after->weight.equal(layer->weight));
  });
}

TEST_CASE(
    "a custom module with nested lazy layers can be cloned before and after its first forward "
    "pass") {
  Net net;
  const auto X = ramp({4, 3}).sin();
  torch::manual_seed(2);
  const auto before = std::dynamic_pointer_cast<NetImpl>(net->clone());
  const auto Y = net(X);
  CHECK(has_uninitialized_params(*before));
  const auto after = std::dynamic_pointer_cast<NetImpl>(net->clone());
  CHECK_FALSE(has_uninitialized_params(*after));
  CHECK(bitwise_equal(*after, *net));
  CHECK(after->block->fc->in_features() == 3);
  CHECK(after->forward(X).equal(Y));
  CHECK(after->parameters()[0].is_same(after->block->fc->weight));
  torch::manual_seed(2);
  CHECK(before->forward(X).equal(Y));
}

TEST_CASE("a Sequential of lazy layers can be cloned before and after its first forward pass") {
  auto net = lazy_cnn();
  const auto X = ramp({2, 3, 4, 4});
  const torch::nn::Sequential before(
      std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone()));
  torch::manual_seed(4);
  const auto Y = net->forward(X);
  const auto after = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  CHECK(bitwise_equal(*after, *net));
  CHECK(has_uninitialized_params(*before));
  torch::manual_seed(4);
  CHECK(before.ptr()->forward(X).equal(Y));
}

TEST_CASE("a lazy layer is initialized by loading an initialized layer's archive") {
  for_each_layer([](auto layer, const Tensor& X, auto twin) {
    const auto bytes = saved(twin);  // the real layer's archive contains the same names
    torch::manual_seed(6);
    const auto next = torch::rand(1);
    torch::manual_seed(6);
    load(layer, bytes);
    CHECK(torch::rand(1).equal(next));  // it drew no random numbers
    CHECK(layer->is_initialized());
    CHECK(bitwise_equal(*layer, *twin));
    CHECK(layer(X).equal(twin(X)));
    load(layer, saved(twin));  // again, into the layer that is now initialized
    load(twin, saved(layer));
    CHECK(bitwise_equal(*layer, *twin));
  });
  Net from;
  Net to;
  torch::optim::SGD sgd(to->parameters(), 0.1);
  from(ramp({4, 3}));
  load(to, saved(from));
  CHECK(bitwise_equal(*to, *from));
  to(ramp({4, 3})).sum().backward();
  sgd.step();
  CHECK_FALSE(to->head->weight.equal(from->head->weight));
}

TEST_CASE("saving an uninitialized layer or loading a mismatched archive throws") {
  Net net;
  CHECK_THROWS_WITH(saved(net), ContainsSubstring("LazyLinear::save: expected an initialized") &&
                                    ContainsSubstring("uninitialized"));
  for_each_layer([](auto layer, const Tensor&, auto) {
    CHECK_THROWS_WITH(saved(layer), ContainsSubstring(layer->layer_name() + "("));
  });
  LazyLinear layer(3);
  const auto fits_not = [&](const auto& other) {
    CHECK_THROWS_WITH(
        load(layer, saved(other)),
        ContainsSubstring(
            "sconce::nn::LazyLinear::load: expected an archive with tensors that match "
            "LazyLinear(in_features=0, out_features=3, bias=True)"));
    CHECK_FALSE(layer->is_initialized());
    CHECK(layer->weight.sizes() == at::IntArrayRef{0});
  };
  fits_not(torch::nn::Linear(4, 2));
  fits_not(torch::nn::Linear(torch::nn::LinearOptions(4, 3).bias(false)));
  fits_not(torch::nn::BatchNorm1d(3));
  CHECK(layer(ramp({2, 4})).size(1) == 3);
}

TEST_CASE("materialize_from initializes only the layers that have matching tensors in the state") {
  Net from;
  from(ramp({4, 3}));
  NamedTensors state = from->named_parameters();
  for (const auto& item : from->named_buffers()) state.insert(item.key(), item.value());
  Net to;
  to->to(torch::kDouble);
  materialize_from(*to, state);
  CHECK_FALSE(has_uninitialized_params(*to));
  to->to(torch::kFloat);
  CHECK(to->block->norm->running_mean.equal(from->block->norm->running_mean));
  CHECK(to->head->weight.equal(from->head->weight));
  CHECK_FALSE(to->head->weight.is_same(from->head->weight));
  CHECK(to->head->weight.requires_grad());

  state.erase("block.fc.bias");
  state["head.weight"] = torch::ones({3, 5});
  Net partly;
  materialize_from(*partly, state);
  CHECK_FALSE(partly->block->fc->is_initialized());
  CHECK_FALSE(partly->head->is_initialized());
  CHECK(partly->block->norm->is_initialized());
}

TEST_CASE(
    "check_initialized reports the calling function and the uninitialized layer with its path") {
  Net net;
  const auto error = [&] { return error_of([&] { check_initialized(*net, "sconce::io::save"); }); };
  CHECK(
      error() ==
      "sconce::io::save: expected an initialized layer, but 'block.fc', LazyLinear(in_features=0, "
      "out_features=5, bias=True) is uninitialized; to initialize the layer, run forward once or "
      "load a full state");
  net->block->fc(ramp({2, 3}));
  CHECK_THAT(error(), ContainsSubstring("'block.norm', LazyBatchNorm1d(0, eps=1e-05"));
  net(ramp({2, 3}));
  CHECK(error() == "nothing was thrown");
  CHECK_FALSE(has_uninitialized_params(*net));
  NetImpl on_the_stack;
  CHECK(has_uninitialized_params(on_the_stack));
}

TEST_CASE("an input that the real layer rejects leaves a lazy layer uninitialized") {
  for_each_layer([](auto layer, const Tensor& X, auto twin) {
    for (const auto& wrong : {torch::ones({}), torch::ones({1, 1, 1, 1, 1, 4})}) {
      const auto theirs = error_of([&] { twin(wrong); });
      if (theirs == "nothing was thrown") continue;  // Linear accepts six dimensions
      CHECK(error_of([&] { layer(wrong); }) == theirs);
      CHECK_FALSE(layer->is_initialized());
      CHECK(layer->weight.sizes() == at::IntArrayRef{0});
    }
    layer(X);
    CHECK(layer->is_initialized());
  });
  LazyLinear linear(2);
  CHECK_THROWS_WITH(linear(torch::ones({3, 0})),
                    ContainsSubstring("LazyLinear: expected an input with at least one feature"));
  CHECK(linear(ramp({4})).sizes() == at::IntArrayRef{2});
  LazyConv1d grouped(LazyConv1dOptions(4, 1).groups(2));
  CHECK_THROWS_WITH(grouped(ramp({1, 3, 5})),
                    ContainsSubstring("in_channels must be divisible by groups"));
  CHECK_FALSE(grouped->is_initialized());
  LazyConvTranspose1d transposed(LazyConvTranspose1dOptions(4, 1).groups(2));
  CHECK_THROWS_WITH(transposed(ramp({1, 3, 5})),
                    ContainsSubstring("in_channels must be divisible by groups"));
  NamedTensors state;
  state.insert("weight", torch::ones({3, 2, 1}));
  state.insert("bias", torch::ones({4}));
  materialize_from(*transposed, state);  // 3 channels in 2 groups
  CHECK_FALSE(transposed->is_initialized());
}

TEST_CASE("a lazy layer rejects out-of-range options on construction") {
  CHECK_THROWS_WITH(
      LazyLinear(-1),
      ContainsSubstring("LazyLinear: expected out_features to be at least 0, got -1"));
  CHECK_THROWS_WITH(LazyConv2d(LazyConv2dOptions(3, 1).groups(2)),
                    ContainsSubstring("LazyConv2d: expected positive out_channels divisible by "
                                      "positive groups, got out_channels 3 and groups 2"));
  CHECK_THROWS(LazyConv1d(0, 1));
  CHECK_THROWS_WITH(
      LazyConvTranspose1d(LazyConvTranspose1dOptions(3, 1).groups(2)),
      ContainsSubstring("LazyConvTranspose1d: expected positive out_channels divisible"));
  CHECK_THROWS_WITH(
      LazyConvTranspose1d(LazyConvTranspose1dOptions(3, 1).padding_mode(torch::kReflect)),
      ContainsSubstring("LazyConvTranspose1d: expected padding_mode kZeros"));
}

TEST_CASE("a lazy convolution passes every option to the real convolution") {
  const auto options = LazyConv2dOptions(4, {3, 2})
                           .stride(2)
                           .padding({2, 1})
                           .dilation({1, 2})
                           .groups(2)
                           .bias(false)
                           .padding_mode(torch::kReflect);
  LazyConv2d layer(options);
  torch::nn::Conv2d twin(torch::nn::Conv2dOptions(2, 4, {3, 2})
                             .stride(2)
                             .padding({2, 1})
                             .dilation({1, 2})
                             .groups(2)
                             .bias(false)
                             .padding_mode(torch::kReflect));
  const auto X = ramp({2, 2, 8, 9}).sin();
  torch::manual_seed(8);
  const auto Y = layer(X);
  torch::manual_seed(8);
  twin->reset_parameters();
  CHECK(Y.equal(twin(X)));
  const auto clone = std::dynamic_pointer_cast<LazyConv2dImpl>(layer->clone());
  CHECK(clone->forward(X).equal(Y));
  LazyConv2d same(LazyConv2dOptions(4, 3).padding(torch::kSame));
  CHECK(same(X).sizes() == at::IntArrayRef{2, 4, 8, 9});
}

TEST_CASE("a lazy BatchNorm without tensors counts as initialized") {
  LazyBatchNorm1d norm(LazyBatchNorm1dOptions().affine(false).track_running_stats(false));
  CHECK(norm->is_initialized());
  CHECK_FALSE(has_uninitialized_params(*norm));
  load(norm, saved(norm));
  norm(ramp({4, 3}));
  CHECK(norm->num_features() == 3);
}

TEST_CASE(
    "Module::as returns the real layer for an initialized lazy layer, so custom initialization "
    "applies to it") {
  auto net = lazy_cnn();
  net->forward(ramp({2, 3, 4, 4}));
  int found = 0;
  net->apply([&](torch::nn::Module& module) {
    if (auto* linear = module.as<torch::nn::Linear>()) {
      torch::nn::init::ones_(linear->weight);
      ++found;
    }
  });
  CHECK(found == 2);
  CHECK(net[4]->as<LazyLinear>()->weight.equal(torch::ones({6, 64})));
}
