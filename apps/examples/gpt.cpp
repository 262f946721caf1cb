// Trains a GPT on a text, byte by byte, and then generates text. Runs as a single process or under
// torchrun.
#include <torch/torch.h>
#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <numbers>
#include <sconce/sconce.hpp>
#include <set>

namespace fs = std::filesystem;
using sconce::amp::Precision;
using sconce::nn::TransformerEncoderLayer;
using torch::Tensor;
using torch::optim::AdamWOptions;

struct Options {
  std::string text = "/usr/share/common-licenses", out;
  int epochs = 14, accumulate = 1;
  int64_t batch = 32, context = 64, width = 128, layers = 4, heads = 4, sample = 200;
  double lr = 2e-3, dropout = 0.1;
  Precision precision = Precision::fp32;
  bool resume = false;
};

struct GPTImpl : torch::nn::Module {
  GPTImpl(int64_t symbols, const Options& o) {
    tokens = register_module("tokens", torch::nn::Embedding(symbols, o.width));
    places = register_module("places", torch::nn::Embedding(o.context, o.width));
    for (auto& table : {tokens, places}) torch::nn::init::normal_(table->weight, 0, 0.02);
    const auto block = sconce::nn::TransformerEncoderLayerOptions(o.width, o.heads)
                           .dim_feedforward(4 * o.width)
                           .dropout(o.dropout)
                           .activation(torch::kGELU)
                           .batch_first(true)
                           .norm_first(true);
    for (int64_t i = 0; i < o.layers; ++i) blocks->push_back(TransformerEncoderLayer(block));
    register_module("blocks", blocks);
    norm = register_module("norm", sconce::nn::LayerNorm(o.width));
    head = register_module("head", torch::nn::Linear(o.width, symbols));
  }
  Tensor forward(const Tensor& x) {  // (N, L) to (N, symbols, L)
    const auto mask = torch::full({x.size(1), x.size(1)}, -INFINITY, x.device()).triu(1);
    auto h = tokens(x) + places(torch::arange(x.size(1), x.device()));
    for (const auto& block : *blocks) {
      h = block->as<TransformerEncoderLayer>()->forward(h, {.src_mask = mask, .is_causal = true});
    }
    // If the input is (N, L, width), torch::nn::Linear adds the bias in a separate step, unlike in
    // Python.
    return head(norm(h).flatten(0, 1)).unflatten(0, x.sizes()).transpose(1, 2);
  }
  torch::nn::Embedding tokens = nullptr, places = nullptr;
  torch::nn::ModuleList blocks;
  sconce::nn::LayerNorm norm = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(GPT);

Tensor read(const fs::path& path) {  // a file, or the files in a folder sorted by name
  std::set<fs::path> files = {path};
  if (fs::is_directory(path)) {
    files = {fs::directory_iterator(path), fs::directory_iterator()};
    std::erase_if(files, [](auto& file) { return !is_regular_file(symlink_status(file)); });
  }
  std::string text;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    TORCH_CHECK(in, "--text: cannot read ", file.string());
    text.append(std::istreambuf_iterator(in), {});
  }
  return torch::from_blob(text.data(), {static_cast<int64_t>(text.size())}, torch::kByte).clone();
}

// Returns batches of non-overlapping text windows. Each target is the same window shifted by one
// byte. Inputs and targets have shape (N, L).
sconce::data::Batches windows(const Tensor& text, const Options& o, bool shuffle,
                              const sconce::distributed::ProcessGroup& group) {
  const auto cut = [&](const Tensor& part) { return part.unfold(0, o.context, o.context); };
  const auto x = cut(text.slice(0, 0, -1));
  const sconce::data::DistributedSampler sampler(x.size(0), group, {.shuffle = shuffle});
  return sconce::data::Batches({x, cut(text.slice(0, 1))},
                               {.batch_size = o.batch, .sampler = sampler});
}

struct BatchLosses : sconce::TrainerCallback {  // read at the end of an epoch, so no step waits
  void on_after_optimizer_step(sconce::Fit& fit) override { losses.push_back(fit.loss.clone()); }
  void on_epoch_end(sconce::Fit& fit) override {
    for (const auto& loss : losses) std::printf("loss %.6f\n", loss.item<double>());
    losses.clear();
    std::printf("epoch %zu: validation loss %.6f\n", fit.epochs.size(),
                fit.epochs.back().at("test_loss"));
  }
  std::vector<Tensor> losses;
};

void write(GPTImpl& net, const Tensor& symbols, const Options& o) {
  const torch::NoGradGuard no_grad;
  net.eval();
  auto text = torch::zeros({1, 1}, torch::dtype(torch::kLong).device(symbols.device()));
  for (int64_t i = 0; i < o.sample; ++i) {
    const auto last = net.forward(text.slice(1, std::max<int64_t>(text.size(1) - o.context, 0)));
    text = torch::cat({text, torch::multinomial(last.select(2, -1).softmax(1), 1)}, 1);
  }
  const auto bytes = symbols.index({text[0]}).cpu();
  std::cout.write(static_cast<const char*>(bytes.const_data_ptr()), bytes.numel()) << "\n";
}

// Weight decay applies only to the matrices.
std::vector<torch::optim::OptimizerParamGroup> groups_of(const GPTImpl& net, double lr) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double decay : {0.1, 0.0}) {
    std::vector<Tensor> parameters;
    for (const auto& p : net.parameters()) {
      if ((p.dim() > 1) == (decay > 0)) parameters.push_back(p);
    }
    groups.emplace_back(parameters,
                        std::make_unique<AdamWOptions>(AdamWOptions(lr).weight_decay(decay)));
  }
  return groups;
}

void train(const Options& o) {
  const auto group = sconce::distributed::ProcessGroup::init();
  const auto [symbols, ids, counts] = torch::_unique2(read(o.text), true, /*return_inverse=*/true);
  TORCH_CHECK(ids.size(0) > 20 * o.context, "--text: expected more than ", 20 * o.context,
              " bytes, got ", ids.size(0));
  const auto split = ids.size(0) * 9 / 10;
  const auto training = windows(ids.slice(0, 0, split), o, /*shuffle=*/true, group);
  const auto validation = windows(ids.slice(0, split), o, /*shuffle=*/false, group);
  torch::manual_seed(0);
  GPT net(symbols.size(0), o);
  net->to(group.device());
  sconce::optim::AdamW adamw(groups_of(*net, o.lr));
  const int64_t steps_per_epoch = (training.size() + o.accumulate - 1) / o.accumulate;
  const auto steps = static_cast<double>(o.epochs * steps_per_epoch), warm_up = steps / 10;
  sconce::optim::lr_scheduler::LambdaLR scheduler(adamw, [=](int64_t done) {
    const auto step = static_cast<double>(done);
    if (step < warm_up) return (step + 1) / (warm_up + 1);
    return 0.1 + 0.45 * (1 + std::cos(std::numbers::pi * (step - warm_up) / (steps - warm_up)));
  });
  sconce::LRScheduling scheduling(scheduler, sconce::SchedulerInterval::step);
  BatchLosses losses;
  sconce::Callbacks callbacks = {&scheduling};
  if (group.rank() == 0) callbacks.push_back(&losses);
  std::optional<sconce::Checkpoint> checkpoint;
  std::optional<sconce::ModelCheckpoint> saving;
  if (!o.out.empty()) {
    checkpoint.emplace(o.out,
                       sconce::CheckpointOptions{.resume = o.resume, .process_group = group});
    callbacks.push_back(&saving.emplace(
        *checkpoint, sconce::ModelCheckpointOptions{.monitor = "val_loss",
                                                    .mode = sconce::optim::MetricMode::min,
                                                    .every_n_train_steps = 50}));
  }
  sconce::Trainer trainer({.max_epochs = o.epochs,
                           .gradient_clip_val = 1,
                           .precision = o.precision,
                           .accumulate_grad_batches = o.accumulate,
                           .metrics = sconce::Metrics(),
                           .process_group = group});
  sconce::nn::DistributedDataParallel model(net, group);
  torch::manual_seed(group.rank());
  trainer.fit(model, adamw, {training, validation, callbacks});
  torch::manual_seed(0);
  if (group.rank() == 0) write(*net, symbols.to(group.device()), o);
}

int main(int argc, char** argv) try {
  CLI::App app("Trains a byte-level GPT on text and prints the generated text.");
  Options o;
  app.add_option("--text", o.text, "A file or a folder of files")->check(CLI::ExistingPath);
  app.add_option("--epochs", o.epochs)->check(CLI::PositiveNumber);
  app.add_option("--accumulate", o.accumulate)->check(CLI::PositiveNumber);
  for (const auto& [name, number] : {std::pair("--batch", &o.batch),
                                     {"--context", &o.context},
                                     {"--width", &o.width},
                                     {"--layers", &o.layers},
                                     {"--heads", &o.heads},
                                     {"--sample", &o.sample}}) {
    app.add_option(name, *number)->check(CLI::PositiveNumber);
  }
  app.add_option("--lr", o.lr)->check(CLI::PositiveNumber);
  app.add_option("--dropout", o.dropout)->check(CLI::Range(0.0, 1.0));
  app.add_option("--precision", o.precision, "fp32, bf16, or fp16")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Precision>{
          {"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}}));
  auto* out = app.add_option("--out", o.out, "A folder for checkpoints");
  app.add_flag("--resume", o.resume, "Continue from the latest checkpoint in the folder")
      ->needs(out);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("gpt: ") + error.what() + " (--help lists the options)\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  train(o);
} catch (const c10::Error& error) {
  std::cerr << "gpt: " << error.what_without_backtrace() << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "gpt: " << error.what() << "\n";
  return 1;
}
