// Records random networks in C++, exports the same networks from Python, and compares both results
// with the original networks.
#include "program/random_networks.hpp"

#include <map>
#include <regex>

#include "catch.hpp"
#include "program/exported_network.hpp"
#include "support/temp_dir.hpp"

using sconce::test::Draw;
using sconce::test::Layer;
using sconce::test::RandomNetwork;
using sconce::test::TempDir;
using torch::Tensor;

namespace {

// Creates an input with the given number of rows.
using MakeInput = std::function<Tensor(int64_t rows)>;

MakeInput random_input(Draw& draw) {
  std::vector<int64_t> shape = {draw.of<int64_t>({1, 2, 3, 4, 6})};
  const auto spatial = draw.of({0, 1, 1, 1, 2, 2, 2, 3});
  for (int i = 0; i < spatial; ++i) shape.push_back(4 + draw.below(spatial == 3 ? 2 : 5));
  return [shape](int64_t rows) {
    auto with_rows = shape;
    with_rows.insert(with_rows.begin(), rows);
    return torch::randn(with_rows);
  };
}

MakeInput random_tokens(Draw& draw) {
  return [length = 4 + draw.below(5)](int64_t rows) { return torch::randint(11, {rows, length}); };
}

// A layer for tokens.
Layer embedding(sconce::test::LayerMaker& make) {
  if (make.draw.one_in(3)) {
    auto layer = make.keep(
        torch::nn::EmbeddingBag(torch::nn::EmbeddingBagOptions(11, 6).mode(torch::kMean)));
    return [layer](const Tensor& x) mutable { return layer->forward(x); };
  }
  auto layer = make.keep(torch::nn::Embedding(torch::nn::EmbeddingOptions(11, 4).padding_idx(0)));
  return [layer](const Tensor& x) mutable { return layer->forward(x).transpose(1, 2); };
}

// Returns the layer's output for the example, or nothing if the layer does not support the example.
Tensor try_layer(const Layer& layer, const Tensor& x) {
  const torch::NoGradGuard no_grad;
  try {
    const auto y = layer(x.clone());
    const bool is_large = y.numel() > 8000;
    const bool fits = y.dim() >= 2 && y.dim() <= 5 && y.numel() > 0 && !is_large;
    return fits && y.isfinite().all().item<bool>() ? y : Tensor();
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace

namespace sconce::test {

RandomNetwork::RandomNetwork(uint32_t seed) {
  torch::manual_seed(seed);
  Draw draw(seed);
  auto owner = std::make_shared<torch::nn::Module>("random");
  const bool has_tokens = draw.one_in(6);
  const auto input = has_tokens ? random_tokens(draw) : random_input(draw);
  std::vector<Layer> layers;
  LayerMaker make{*owner, draw, input(2)};
  if (has_tokens) {
    layers.push_back(embedding(make));
    make.x = layers.back()(make.x).detach();
  }
  const auto count = layers.size() + 1 + static_cast<size_t>(draw.below(5));
  while (layers.size() < count) {
    const auto& kind = draw.from(layer_kinds());
    const size_t known = owner->children().size();
    Layer layer = kind.make(make);
    for (size_t i = known; i < owner->children().size(); ++i) owner->children()[i]->eval();
    if (layer == nullptr) continue;
    const auto y = try_layer(layer, make.x);
    if (!y.defined()) continue;
    kinds.insert(kind.name);
    layers.push_back(layer);
    make.x = y;
  }
  owner->eval();
  network = {"random" + std::to_string(seed), owner,
             [layers](const Tensors& in) {
               Tensor x = in[0];
               for (const auto& layer : layers) x = layer(x);
               return Tensors{x};
             },
             [input](int64_t rows) { return StateDict{{"x", input(rows)}}; }};
}

}  // namespace sconce::test

namespace {

// Counts the rejections by reason, ignoring file names and numeric values in the messages.
struct RefusalCounts {
  void add(const std::string& kind, const std::string& network, const std::string& reason) {
    const auto line = reason.substr(0, reason.find('\n'));
    auto text = std::regex_replace(line, std::regex("[^ ]*/random\\d+[^ ]*"), "");
    text = std::regex_replace(text, std::regex("\\d+"), "#").substr(0, 220);
    by_reason[kind + ": " + text].push_back(network);
    refused[kind].insert(network);
  }

  void print() const {
    for (const auto& [reason, networks] : by_reason) {
      std::cout << networks.size() << " x " << reason << " (" << networks.front() << ")\n";
    }
  }

  std::map<std::string, std::vector<std::string>> by_reason = {};
  std::map<std::string, std::set<std::string>> refused = {};
};

RefusalCounts export_random_networks(uint32_t count, const std::string& options) {
  const TempDir folder;
  RefusalCounts refusals;
  for (uint32_t seed = 0; seed < count; ++seed) {
    const RandomNetwork random(seed);
    std::string kinds;
    for (const auto& kind : random.kinds) kinds += kind + ", ";
    INFO(kinds);
    try {
      record_and_check({random.network}, folder.path());
    } catch (const c10::Error& error) {
      refusals.add("record", random.network.name, error.what_without_backtrace());
    }
  }
  for (const auto& refusal : sconce::test::compare_in_python(folder, options)) {
    refusals.add(refusal.kind, refusal.network, refusal.reason);
  }
  return refusals;
}

}  // namespace

TEST_CASE("ten random networks are exported", "[python]") {
  const auto refusals = export_random_networks(10, "");
  refusals.print();
  CHECK(refusals.by_reason.empty());
}

TEST_CASE("at least 95% of 300 random networks can be exported and return the same outputs",
          "[.][slow]") {
  auto refusals = export_random_networks(300, "--onnx all");
  refusals.print();
  CHECK(refusals.refused["record"].size() + refusals.refused["exported"].size() <= 15);
}
