#include "sconce/training/checkpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <torch/nn/modules.h>
#include <torch/nn/modules/container/sequential.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <tuple>
#include <type_traits>

#include "catch.hpp"
#include "fuzz/archive.hpp"
#include "io/lock_errors.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/processes.hpp"
#include "support/require_gpu.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::Checkpoint;
using sconce::CheckpointOptions;
using sconce::RunProgress;
using sconce::optim::MetricMode;
using sconce::test::contents;
using sconce::test::errno_of_flock;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;
namespace lr_scheduler = sconce::optim::lr_scheduler;
using Names = std::vector<std::string>;

// A training run whose checkpoint contains a model, an optimizer, a scheduler, a scaler, and
// averages. Runs with different seeds have different state.
struct Run {
  explicit Run(uint64_t seed, torch::Device device = torch::kCPU) {
    torch::manual_seed(seed);
    net->to(device);
    for (int i = 0; i < 3; ++i) step();
  }

  torch::Tensor step() {
    const auto x = torch::randn({5, 4}, net->parameters()[0].device());
    optimizer.zero_grad();
    const auto loss = net->forward(x).square().mean();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    ema.update();
    scheduler.step();
    return loss.detach();
  }

  sconce::NamedStates parts() {
    return {{"model", *net},
            {"optimizer", optimizer},
            {"scheduler", scheduler},
            {"scaler", scaler},
            {"ema", ema}};
  }

  torch::nn::Sequential net{torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3),
                            torch::nn::Dropout(0.5), torch::nn::Linear(3, 2)};
  sconce::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  lr_scheduler::StepLR scheduler{optimizer, /*step_size=*/2};
  sconce::amp::GradScaler scaler{{.device = torch::kCPU, .growth_interval = 2}};
  sconce::optim::ExponentialMovingAverage ema{*net, {.decay = 0.9}};
};

}  // namespace

TEST_CASE("a run resumed from its checkpoint continues as if it had never stopped") {
  const TempDir folder;
  Run first(1);
  Checkpoint saved(folder.path());
  saved.save(first.parts(), {.epoch = 2, .batch = 7, .extra = std::string("more")});
  std::vector<torch::Tensor> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(first.step());

  Run second(2);
  Checkpoint checkpoint(folder.path(), {.resume = true});
  const auto progress = checkpoint.load(second.parts());
  REQUIRE(progress);
  CHECK(progress->epoch == 2);
  CHECK(progress->batch == 7);
  CHECK(progress->extra == c10::IValue("more"));
  for (const auto& loss : losses) CHECK(torch::equal(second.step(), loss));
  for (size_t i = 0; i < first.net->parameters().size(); ++i) {
    CHECK(torch::equal(first.net->parameters()[i], second.net->parameters()[i]));
  }
  CHECK(first.scaler.state_dict() == second.scaler.state_dict());
  CHECK(first.scheduler.get_last_lr() == second.scheduler.get_last_lr());
  CHECK(torch::equal(first.ema.state_dict()["module.3.weight"],
                     second.ema.state_dict()["module.3.weight"]));
}

TEST_CASE("resume has no effect in an empty folder and is required in a folder with checkpoints") {
  const TempDir folder;
  const auto inner = folder.path() / "a" / "b";
  Run run(1);
  const auto before = torch::rand({1});
  torch::manual_seed(5);
  Checkpoint checkpoint(inner, {.resume = true});
  CHECK_FALSE(checkpoint.load(run.parts()));
  const auto drawn = torch::rand({1});
  torch::manual_seed(5);
  CHECK(torch::equal(torch::rand({1}), drawn));
  CHECK(checkpoint.latest().empty());
  checkpoint.save(run.parts(), {.epoch = 1});
  CHECK(checkpoint.latest() == inner / "checkpoint-000001-00000000.pt");
  CHECK_THROWS_WITH(
      Checkpoint(inner),
      ContainsSubstring("expected a folder without checkpoints, or the resume option; found ") &&
          ContainsSubstring("checkpoint-000001-00000000.pt"));
}

TEST_CASE(
    "the most recent checkpoints and the best checkpoint are kept, and a resumed run remembers "
    "which checkpoint is best") {
  const TempDir folder;
  const auto save = [](Checkpoint& to, int64_t epoch, std::optional<double> metric) {
    to.save({}, {.epoch = epoch}, metric);
  };
  folder.write("checkpoint-000000-00000003.pt.4711-0.part", "left by a killed writer");
  folder.write("other", "not ours");
  {
    Checkpoint checkpoint(folder.path(), {.keep_last = 2});
    save(checkpoint, 1, 0.5);
    save(checkpoint, 2, 0.75);
    save(checkpoint, 3, 0.75);
    save(checkpoint, 4, {});
    save(checkpoint, 5, 0.25);
  }
  CHECK(names_in(folder.path()) == Names{"best.pt", "checkpoint-000002-00000000.pt",
                                         "checkpoint-000004-00000000.pt",
                                         "checkpoint-000005-00000000.pt", "other"});
  CHECK(fs::read_symlink(folder.path() / "best.pt") == "checkpoint-000002-00000000.pt");

  Checkpoint resumed(folder.path(), {.resume = true, .keep_last = 1});
  CHECK(resumed.load({})->epoch == 5);
  CHECK(resumed.best() == folder.path() / "checkpoint-000002-00000000.pt");
  save(resumed, 6, 0.7);
  CHECK(names_in(folder.path()) == Names{"best.pt", "checkpoint-000002-00000000.pt",
                                         "checkpoint-000006-00000000.pt", "other"});
  save(resumed, 7, 0.8);
  CHECK(names_in(folder.path()) == Names{"best.pt", "checkpoint-000007-00000000.pt", "other"});
  CHECK_THROWS_WITH(Checkpoint(folder.path(), {.keep_last = 0}), ContainsSubstring("keep_last"));
  save(resumed, 999'999, std::nan(""));
  save(resumed, 1'000'000, {});
  CHECK(resumed.latest() == folder.path() / "checkpoint-1000000-00000000.pt");
  CHECK(resumed.best() == folder.path() / "checkpoint-000007-00000000.pt");
}

TEST_CASE(
    "Checkpoint accepts the largest epoch and batch that fit in a file name and rejects larger "
    "ones") {
  constexpr int64_t largest = 999'999'999'999'999'999;
  constexpr int64_t beyond = largest + 1;
  const TempDir folder;
  const auto refusal = [](const std::string& got) {
    return ContainsSubstring("expected an epoch and a batch from 0 to 999999999999999999, got " +
                             got);
  };
  {
    Checkpoint checkpoint(folder.path());
    CHECK_THROWS_WITH(checkpoint.save({}, {.epoch = std::numeric_limits<int64_t>::max()}),
                      refusal("epoch 9223372036854775807 and batch 0"));
    CHECK_THROWS_WITH(checkpoint.save({}, {.epoch = beyond}),
                      refusal("epoch " + std::to_string(beyond)));
    CHECK_THROWS_WITH(checkpoint.save({}, {.batch = beyond}),
                      refusal("epoch 0 and batch 1000000000"));
    CHECK_THROWS_WITH(checkpoint.save({}, {.epoch = -1}), refusal("epoch -1"));
    CHECK(names_in(folder.path()).empty());
    checkpoint.lock();
    checkpoint.save({}, {.epoch = largest, .batch = largest});
    CHECK(fs::exists(checkpoint.latest()));
  }
  const auto last = "checkpoint-000001-00000000-" + std::to_string(largest) + ".pt";
  fs::rename(folder.path() / names_in(folder.path()).front(), folder.path() / last);
  Checkpoint resumed(folder.path(), {.resume = true});
  REQUIRE(resumed.load({}));
  CHECK_THROWS_WITH(resumed.save({}, {.epoch = 1}),
                    ContainsSubstring("restarted at most 999999999999999999 times"));
  CHECK(names_in(folder.path()) == Names{last});
  resumed.save({}, {.epoch = 2});
  CHECK(resumed.latest() ==
        folder.path() / ("checkpoint-000002-00000000-" + std::to_string(largest) + ".pt"));
}

TEST_CASE(
    "loading under the lock completes a save whose process was killed after writing the "
    "checkpoint") {
  const TempDir folder;
  const fs::path first = folder.path() / "checkpoint-000001-00000000.pt";
  const fs::path link = folder.path() / "best.pt";
  {
    Checkpoint checkpoint(folder.path());
    checkpoint.save({}, {.epoch = 1}, 0.5);
    fs::copy(first, folder.path() / "kept");
    checkpoint.save({}, {.epoch = 2}, 0.75);
  }
  fs::rename(folder.path() / "kept", first);
  fs::remove(link);
  fs::create_symlink(first.filename(), link);
  fs::create_symlink("checkpoint-000002-00000000.pt", folder.path() / "best.pt.part");
  const Names killed = names_in(folder.path());
  CHECK(killed.size() == 4);

  Checkpoint reader(folder.path(), {.resume = true});
  reader.load({});
  CHECK(names_in(folder.path()) == killed);

  Checkpoint resumed(folder.path(), {.resume = true});
  resumed.lock();
  resumed.load({});
  CHECK(names_in(folder.path()) == Names{"best.pt", "checkpoint-000002-00000000.pt"});
  CHECK(fs::read_symlink(link) == "checkpoint-000002-00000000.pt");
}

TEST_CASE(
    "without keep_best set, there is no best checkpoint, and a resumed Checkpoint must load before "
    "it saves") {
  const TempDir folder;
  {
    Checkpoint checkpoint(folder.path(), {.keep_best = false});
    checkpoint.save({}, {.epoch = 1}, 0.5);
    checkpoint.save({}, {.epoch = 2}, 0.25);
    CHECK(checkpoint.best().empty());
  }
  CHECK(names_in(folder.path()) == Names{"checkpoint-000002-00000000.pt"});
  Checkpoint resumed(folder.path(), {.resume = true});
  CHECK_THROWS_WITH(resumed.save({}, {.epoch = 1}), ContainsSubstring("expected load before save"));
  CHECK(names_in(folder.path()) == Names{"checkpoint-000002-00000000.pt"});
}

TEST_CASE(
    "a run resumed without keep_best set deletes the earlier best checkpoint and the link to it") {
  const TempDir folder;
  Checkpoint(folder.path()).save({}, {.epoch = 1}, 0.5);
  Checkpoint resumed(folder.path(), {.resume = true, .keep_best = false});
  resumed.load({});
  resumed.save({}, {.epoch = 2}, 0.25);
  CHECK(names_in(folder.path()) == Names{"checkpoint-000002-00000000.pt"});
}

TEST_CASE(
    "the best checkpoint has the lowest or highest value, depending on the mode, even in files "
    "from earlier versions") {
  const auto [mode, values, best] =
      GENERATE(std::tuple(MetricMode::min, std::array{0.5, -0.25, 0.75}, 2),
               std::tuple(MetricMode::max, std::array{0.5, -0.25, 0.75}, 3));
  const TempDir folder;
  const auto best_in_file = [](const Checkpoint& checkpoint) {
    return sconce::io::load_torch(checkpoint.best()).toGenericDict().at("best").toGenericDict();
  };
  const std::string name = c10::str("checkpoint-00000", best, "-00000000.pt");
  const bool is_min = mode == MetricMode::min;
  {
    Checkpoint checkpoint(folder.path());
    for (int epoch = 1; epoch <= 3; ++epoch) {
      const double value = values.at(static_cast<size_t>(epoch - 1));
      checkpoint.save({}, {.epoch = epoch}, sconce::MonitoredValue("score", value, mode));
    }
    CHECK(checkpoint.best().filename() == name);
    // As in earlier versions, a higher stored metric is always better, so a minimized metric is
    // stored negated.
    CHECK(best_in_file(checkpoint).at("metric") == (is_min ? 0.25 : 0.75));
    CHECK(best_in_file(checkpoint).at("monitor") == (is_min ? "lowest score" : "highest score"));
  }

  Checkpoint resumed(folder.path(), {.resume = true});
  resumed.load({});
  resumed.save({}, {.epoch = 4}, sconce::MonitoredValue("score", 0.5, mode));
  CHECK(resumed.best().filename() == name);
  resumed.save({}, {.epoch = 5}, sconce::MonitoredValue("score", is_min ? -0.5 : 1.0, mode));
  CHECK(resumed.best() == resumed.latest());
  CHECK(best_in_file(resumed).at("metric") == (is_min ? 0.5 : 1.0));
}

TEST_CASE(
    "latest returns the most recently written checkpoint, even after the folder is reopened") {
  const TempDir folder;
  const auto save = [](Checkpoint& to, int64_t epoch) {
    to.save({}, {.epoch = epoch});
    CHECK(fs::exists(to.latest()));
    CHECK(sconce::io::load_torch(to.latest()).toGenericDict().at("epoch") == epoch);
  };
  {
    Checkpoint checkpoint(folder.path(), {.keep_last = 2});
    for (const int epoch : {3, 1, 2, 2}) save(checkpoint, epoch);
    CHECK(names_in(folder.path()) ==
          Names{"checkpoint-000002-00000000-2.pt", "checkpoint-000002-00000000-3.pt"});
    save(checkpoint, 1);
  }
  Checkpoint resumed(folder.path(), {.resume = true});
  CHECK(resumed.latest() == folder.path() / "checkpoint-000001-00000000-4.pt");
  CHECK(resumed.load({})->epoch == 1);
  save(resumed, 2);
  CHECK(names_in(folder.path()) == Names{"checkpoint-000002-00000000-4.pt"});
}

TEST_CASE(
    "saving the same progress again with a worse metric does not replace the best checkpoint") {
  const TempDir folder;
  Checkpoint checkpoint(folder.path());
  for (const double metric : {0.9, 0.5}) checkpoint.save({}, {.epoch = 2, .extra = metric}, metric);
  const auto extra_of = [](const fs::path& file) {
    return sconce::io::load_torch(file).toGenericDict().at("extra").toDouble();
  };
  CHECK(extra_of(folder.path() / "best.pt") == 0.9);
  CHECK(extra_of(checkpoint.best()) == 0.9);
  CHECK(extra_of(checkpoint.latest()) == 0.5);
}

TEST_CASE("a checkpoint folder has one writer at a time and any number of readers") {
  const TempDir folder;
  std::optional<Checkpoint> first(folder.path());
  Checkpoint begun(folder.path());
  first->save({}, {.epoch = 1}, 0.5);
  Checkpoint second(folder.path(), {.resume = true});
  CHECK(second.load({})->epoch == 1);
  const std::string refusal =
      folder.path().string() + ": expected a folder that no other Checkpoint writes to";
  CHECK_THROWS_WITH(second.lock(), ContainsSubstring(refusal));
  CHECK_THROWS_WITH(second.save({}, {.epoch = 2}), ContainsSubstring(refusal));
  CHECK(names_in(folder.path()) == Names{"best.pt", "checkpoint-000001-00000000.pt"});
  Checkpoint moved = std::move(*first);
  first.reset();
  CHECK_THROWS_WITH(second.lock(), ContainsSubstring(refusal));
  {
    const Checkpoint ends = std::move(moved);
  }
  second.lock();
  second.save({}, {.epoch = 2});
  CHECK(second.best() == folder.path() / "checkpoint-000001-00000000.pt");
  CHECK_THROWS_WITH(begun.load({}), ContainsSubstring(folder.path().string()) &&
                                        ContainsSubstring("expected a folder without checkpoints"));
  CHECK_FALSE(second.load({}) == std::nullopt);
}

TEST_CASE(
    "after another writer saves, a Checkpoint must load the new checkpoint before it can save") {
  const TempDir folder;
  Checkpoint late(folder.path(), {.resume = true});
  CHECK_FALSE(late.load({}));
  Checkpoint(folder.path()).save({}, {.epoch = 5});
  CHECK_THROWS_WITH(late.save({}, {.epoch = 1}), ContainsSubstring("expected load before save"));
  CHECK(late.load({})->epoch == 5);
  late.save({}, {.epoch = 6});
  CHECK(names_in(folder.path()) == Names{"checkpoint-000006-00000000.pt"});
}

TEST_CASE("programs that the process starts do not inherit a checkpoint folder's lock") {
  const TempDir folder;
  Checkpoint checkpoint(folder.path());
  checkpoint.lock();
  int locks = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (fs::read_symlink(entry, ignored) != fs::canonical(folder.path())) continue;
    ++locks;
    CHECK(fcntl(std::stoi(entry.path().filename().string()), F_GETFD) == FD_CLOEXEC);
  }
  CHECK(locks == 1);
}

TEST_CASE("on a file system that does not support locks, checkpoints are saved without a lock",
          "[alone]") {
  errno_of_flock = GENERATE(ENOSYS, ENOLCK, EOPNOTSUPP, EBADF);
  const TempDir folder;
  Checkpoint first(folder.path()), second(folder.path());
  first.lock();
  second.lock();
  errno_of_flock = 0;
  first.save({}, {.epoch = 1});
  CHECK_THROWS_WITH(second.save({}, {.epoch = 1}), ContainsSubstring("expected load before save"));
}

TEST_CASE("a checkpoint whose best entry refers to a file outside its folder is rejected") {
  const TempDir folder;
  Checkpoint checkpoint(folder.path());
  checkpoint.save({}, {.epoch = 1}, 0.5);
  const auto saved = sconce::io::load_torch(checkpoint.latest());
  auto best = saved.toGenericDict().at("best").toGenericDict();
  for (const char* name : {"", "../other", "/etc/passwd", "checkpoint-000001-00000000.pt/../x"}) {
    best.insert_or_assign("file", name);
    sconce::io::save_torch(checkpoint.latest(), saved);
    CHECK_THROWS_WITH(Checkpoint(folder.path(), {.resume = true}).load({}),
                      ContainsSubstring("a checkpoint name"));
  }
}

TEST_CASE("a checkpoint written without checksums is rejected") {
  const TempDir folder;
  Checkpoint checkpoint(folder.path());
  checkpoint.save({}, {.epoch = 1});
  const auto file = checkpoint.latest();
  folder.write(file.filename(), sconce::test::without_checksums(file));
  CHECK_THROWS_WITH(Checkpoint(folder.path(), {.resume = true}).load({}),
                    ContainsSubstring("expected an archive with checksums"));
}

TEST_CASE(
    "loading a checkpoint whose parts do not match the run's parts throws before anything "
    "changes") {
  const TempDir folder;
  Run run(1);
  Checkpoint(folder.path()).save(run.parts(), {});
  Run other(2);
  const auto weight = other.net->parameters()[0].detach().clone();
  Checkpoint checkpoint(folder.path(), {.resume = true});
  auto parts = other.parts();
  parts.pop_back();
  CHECK_THROWS_WITH(checkpoint.load(parts),
                    ContainsSubstring(checkpoint.latest().string()) &&
                        ContainsSubstring("expected a run with the part 'ema'"));
  CHECK(torch::equal(other.net->parameters()[0], weight));
  torch::nn::Linear another(4, 3);
  parts = other.parts();
  parts[0].second = sconce::Stateful(*another);
  CHECK_THROWS_WITH(checkpoint.load(parts), ContainsSubstring("unexpected: 0.weight"));
}

TEST_CASE("saving a checkpoint rejects duplicate or reserved part names") {
  const TempDir folder;
  torch::nn::Linear net(2, 1);
  Checkpoint checkpoint(folder.path());
  CHECK_THROWS_WITH(checkpoint.save({{"a", *net}, {"a", *net}}, {}), ContainsSubstring("got 'a'"));
  CHECK_THROWS_WITH(checkpoint.save({{"epoch", *net}}, {}), ContainsSubstring("got 'epoch'"));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE(
    "a checkpoint part can be loaded under its former name unless another part has that name") {
  const TempDir folder;
  torch::nn::Linear net(2, 1), other(2, 1);
  Checkpoint(folder.path()).save({{"net", *net}}, {});
  const auto weight = net->weight.detach().clone();
  sconce::Stateful renamed(*net);
  renamed.set_former_names({"network", "net"});
  torch::NoGradGuard no_grad;
  net->weight.add_(1);
  Checkpoint resumed(folder.path(), {.resume = true});
  CHECK_THROWS_WITH(
      resumed.load({{"model", renamed}, {"net", *other}}),
      ContainsSubstring("expected a run without the part 'model' (as in the checkpoint)"));
  CHECK(resumed.load({{"model", renamed}}));
  CHECK(torch::equal(net->weight, weight));
}

TEST_CASE("a namespace-qualified class name in a checkpoint matches the unqualified class name") {
  const TempDir folder;
  torch::nn::Linear net(2, 1);
  sconce::optim::SGD sgd(net->parameters(), 0.1);
  Checkpoint saving(folder.path());
  saving.save({{"optimizer", sgd}}, {});
  const auto saved = sconce::io::load_torch(saving.latest()).toGenericDict();
  const auto rewrite = [&](const char* name) {
    saved.at("classes").toGenericDict().insert_or_assign("optimizer", name);
    sconce::io::save_torch(saving.latest(), saved);
  };
  rewrite("sconce::optim::SGD");  // as version 0.2 wrote it
  CHECK(Checkpoint(folder.path(), {.resume = true}).load({{"optimizer", sgd}}));
  rewrite("sconce::optim::OtherSGD");
  CHECK_THROWS_WITH(Checkpoint(folder.path(), {.resume = true}).load({{"optimizer", sgd}}),
                    ContainsSubstring("the class sconce::optim::OtherSGD"));
}

TEST_CASE(
    "a checkpoint from a different optimizer or scheduler is rejected before anything changes") {
  const TempDir folder;
  torch::nn::Linear net(2, 1);
  const auto weight = net->weight.detach().clone();
  sconce::optim::Adam adam(net->parameters());
  lr_scheduler::StepLR steps(adam, 2);
  const auto parts = [&](auto& optimizer, auto& scheduler) {
    return sconce::NamedStates{{"model", *net}, {"optimizer", optimizer}, {"scheduler", scheduler}};
  };
  Checkpoint(folder.path()).save(parts(adam, steps), {});
  torch::NoGradGuard no_grad;
  net->weight.add_(1);
  Checkpoint resumed(folder.path(), {.resume = true});
  sconce::optim::AdamW adamw(net->parameters());  // Python's AdamW accepts Adam state
  lr_scheduler::ExponentialLR shrinks(adam, 0.5);
  CHECK_THROWS_WITH(
      resumed.load(parts(adamw, steps)),
      ContainsSubstring("the class Adam for 'optimizer' (as in the checkpoint), got AdamW"));
  CHECK_THROWS_WITH(
      resumed.load(parts(adam, shrinks)),
      ContainsSubstring(
          "the class StepLR for 'scheduler' (as in the checkpoint), got ExponentialLR"));
  CHECK(torch::equal(net->weight, weight + 1));
  CHECK(resumed.load(parts(adam, steps)));
  CHECK(torch::equal(net->weight, weight));
}

TEST_CASE(
    "a checkpoint is rejected if it is truncated or if any of 2,000 randomly chosen bits in its "
    "values is flipped",
    "[alone]") {
  const TempDir folder;
  Run run(1);
  const auto extra = torch::rand({1000});
  Checkpoint(folder.path()).save(run.parts(), {.extra = extra});
  Checkpoint checkpoint(folder.path(), {.resume = true});
  const auto file = checkpoint.latest();
  const std::string good = contents(file);
  const auto error_with = [&](const std::string& bytes) {
    folder.write(file.filename().string(), bytes);
    return error_of([&] { checkpoint.load(run.parts()); });
  };
  REQUIRE(error_with(good) == "nothing was thrown");
  const auto weight = run.net->parameters()[0].detach().clone();
  // The load_torch tests cover every file size. This test samples the sizes, except near the end of
  // the file, where the archive's directory is located.
  for (size_t size = 0; size < good.size(); size += size + 256 < good.size() ? 61 : 1) {
    CHECK_THAT(error_with(good.substr(0, size)), ContainsSubstring(file.string()));
  }
  const size_t values = good.find(std::string(static_cast<const char*>(extra.data_ptr()), 4000));
  REQUIRE(values != std::string::npos);
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    char& byte = bad[values + random() % 4000];
    byte = static_cast<char>(byte ^ (1 << (random() % 8)));
    refused += error_with(bad).find("the file is damaged") != std::string::npos;
  }
  CHECK(refused == 2000);
  CHECK(torch::equal(run.net->parameters()[0], weight));
}

namespace {

// A model with one of LibTorch's optimizers, as in tests/reference/checkpoint.py.
struct WithLibTorchs {
  sconce::NamedStates parts() { return {{name + " model", *net}, {name, *optimizer}}; }

  void steps(const torch::Tensor& x) {
    for (int i = 0; i < 3; ++i) {
      optimizer->step([&] {
        optimizer->zero_grad();
        auto loss = net->forward(x).square().mean();
        loss.backward();
        return loss;
      });
    }
  }

  std::string name;
  torch::nn::Linear net;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
};

// Returns one model for each LibTorch optimizer class. The options are chosen so that every key
// appears in the optimizer's state.
std::vector<WithLibTorchs> libtorchs() {
  std::vector<WithLibTorchs> all;
  const auto add = [&]<class Optimizer>(const char* name, const auto& options,
                                        std::type_identity<Optimizer>) {
    torch::nn::Linear net(4, 2);
    all.push_back({name, net, std::make_shared<Optimizer>(net->parameters(), options)});
  };
  using namespace torch::optim;
  add("Adagrad", AdagradOptions(0.1).lr_decay(0.1), std::type_identity<Adagrad>());
  add("Adam", AdamOptions(0.1).amsgrad(true), std::type_identity<Adam>());
  add("AdamW", AdamWOptions(0.1).weight_decay(0.1), std::type_identity<AdamW>());
  add("LBFGS", LBFGSOptions(0.1).max_iter(3), std::type_identity<LBFGS>());
  add("RMSprop", RMSpropOptions(0.1).momentum(0.9).centered(true), std::type_identity<RMSprop>());
  add("SGD", SGDOptions(0.1).momentum(0.9), std::type_identity<SGD>());
  return all;
}

// Saves a checkpoint of LibTorch's optimizers. Also saves each optimizer's weight after three more
// steps, under the optimizer's name.
void save_libtorchs(const fs::path& folder, const torch::Tensor& x, sconce::StateDict& after) {
  auto all = libtorchs();
  sconce::NamedStates parts;
  for (auto& each : all) {
    each.steps(x);
    const auto of_each = each.parts();
    parts.insert(parts.end(), of_each.begin(), of_each.end());
  }
  Checkpoint(folder).save(parts, {});
  for (auto& each : all) {
    each.steps(x);
    after.insert(each.name, each.net->weight.detach());
  }
}

// Continues from the state that Python saved after the same three steps, and compares the result
// with the next steps in Python.
void check_pythons(const fs::path& file, const torch::Tensor& x) {
  const auto saved = sconce::io::load_torch(file).toGenericDict();
  for (auto& each : libtorchs()) {
    INFO(each.name);
    const auto parts = each.parts();
    parts[0].second.load_state_dict(saved.at(each.name + " model"));
    parts[1].second.load_state_dict(saved.at(each.name));
    each.steps(x);
    CHECK(
        torch::allclose(each.net->weight, saved.at(each.name + " next").toTensor(), 1.3e-6, 1e-5));
  }
}

}  // namespace

TEST_CASE("Python opens a checkpoint and continues the run", "[python]") {
  const TempDir folder;
  Run run(1);
  Checkpoint checkpoint(folder.path());
  checkpoint.save(run.parts(), {.epoch = 2, .batch = 7}, 0.5);
  const auto x = torch::randn({5, 4});
  sconce::StateDict after;
  run.net->eval();  // no dropout
  for (int i = 0; i < 4; ++i) {
    run.optimizer.zero_grad();
    run.scaler.scale(run.net->forward(x).square().mean()).backward();
    run.scaler.step(run.optimizer);
    run.scaler.update();
    run.scheduler.step();
  }
  after = sconce::nn::state_dict(*run.net);
  after.insert("x", x);
  save_libtorchs(folder.path() / "libtorchs", x, after);
  sconce::io::save_safetensors(folder.path() / "after", after);
  std::string line;
  std::getline(sconce::test::ask_python(folder, "checkpoint.py", "answer"), line);
  CHECK(line == "epoch 2 batch 7 best 0.5 equal True");
  check_pythons(folder.path() / "python.pt", x);
}

TEST_CASE("on a GPU, a run continues from its checkpoint", "[gpu]") {
  sconce::test::require_gpu();
  const TempDir folder;
  const torch::Device gpu(torch::kCUDA, 0);
  Run first(1, gpu);
  Checkpoint(folder.path()).save(first.parts(), {});
  std::vector<torch::Tensor> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(first.step());
  Run second(2, gpu);
  REQUIRE(Checkpoint(folder.path(), {.resume = true}).load(second.parts()));
  for (const auto& loss : losses) CHECK(torch::equal(second.step(), loss));
}

namespace {

// Runs the worker's fit in the given number of processes, and returns the text that the processes
// wrote to stderr.
std::string run_fit(int ranks, const std::string& folder, const fs::path& out, int stop_after) {
  std::vector<std::string> command = {SCONCE_WORKER, "fit", folder, out.string()};
  if (stop_after > 0) command.push_back(std::to_string(stop_after));
  sconce::test::Processes processes;
  if (ranks == 1) {
    processes.push_back(
        std::make_unique<sconce::test::Process>(command, sconce::test::Variables{}));
  } else {
    processes = sconce::test::start_ranks(ranks, command);
  }
  wait_for(processes, std::chrono::seconds(60));
  std::string errors;
  for (const auto& process : processes) {
    errors += process->err();
    if (process->exit_code != 0) errors += "exit code " + std::to_string(process->exit_code);
  }
  return errors;
}

// Stops and resumes a fit after various steps, and compares the results with an uninterrupted fit.
void check_resumed_fits(int ranks) {
  const TempDir folder;
  const auto whole = folder.path() / "whole";
  REQUIRE(run_fit(ranks, "-", whole, 0) == "");
  for (const int steps : sconce::test::is_sanitized ? std::vector{3} : std::vector{1, 3, 5, 7}) {
    INFO(ranks << " ranks, stopped after " << steps << " steps");
    const auto checkpoints = (folder.path() / std::to_string(steps)).string();
    const auto out = folder.path() / ("resumed " + std::to_string(steps));
    REQUIRE(run_fit(ranks, checkpoints, out, steps) == "");
    REQUIRE_FALSE(fs::exists(out));
    REQUIRE(run_fit(ranks, checkpoints, out, 0) == "");
    CHECK(contents(out) == contents(whole));
  }
  CHECK_THAT(run_fit(3 - ranks, (folder.path() / "3").string(), folder.path() / "other", 0),
             ContainsSubstring("expected a run of " + std::to_string(ranks) + " processes"));
}

}  // namespace

TEST_CASE(
    "a fit that is stopped after any step and resumed matches an uninterrupted fit bit for bit",
    "[distributed]") {
  check_resumed_fits(1);
}

TEST_CASE("a two-process fit that is stopped and resumed matches an uninterrupted fit bit for bit",
          "[distributed]") {
  check_resumed_fits(2);
}

namespace {

// Returns the version number in a saved tensor, or -1 if the tensor mixes versions.
int64_t version_of(const torch::Tensor& x) {
  const auto first = x[0].item<int64_t>();
  return x.numel() == 50'000 && x.eq(first).all().item<bool>() ? first : -1;
}

// Kills `rounds` writers, each at a different moment.
void kill_writers(int rounds) {
  const TempDir folder;
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    int64_t last = 0;
    {
      sconce::test::Process writer({SCONCE_WORKER, "save", folder.path().string()}, {});
      while (writer.out().empty() && !writer.ended()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // leaves the core to the writer
        writer.poll();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
      writer.send(SIGKILL);
      while (!writer.ended()) writer.poll();
      std::istringstream lines(writer.out());
      for (int64_t version = 0; lines >> version;) last = version;
    }
    INFO("round " << round << ", killed after version " << last);
    REQUIRE(last > 0);
    const auto safetensors = sconce::io::load_safetensors(folder.path() / "file.safetensors");
    const auto torch_file = sconce::io::load_torch(folder.path() / "file.pt");
    Checkpoint checkpoint(folder.path() / "checkpoints", {.resume = true});
    checkpoint.lock();  // the killed writer's lock is gone
    const auto progress = checkpoint.load({});
    for (const auto& state : {safetensors, sconce::io::as_state_dict(torch_file),
                              sconce::io::as_state_dict(progress->extra)}) {
      const auto version = version_of(state["x"]);
      CHECK((version == last || version == last + 1));
    }
    // A new writer starts with version 1.
    fs::remove_all(folder.path() / "checkpoints");
  }
  const auto left = names_in(folder.path());
  CHECK(left.size() <= 4);  // both files, and one leftover of each from the last killed writer
}

}  // namespace

TEST_CASE("a writer killed at 20 random moments leaves complete files", "[distributed]") {
  kill_writers(20);
}

TEST_CASE("a writer killed at 300 random moments leaves complete files", "[.][kills]") {
  kill_writers(300);
}
