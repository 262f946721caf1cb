// Tests random fits that are stopped at random moments and resumed, and random sequences of
// operations on a Checkpoint without a Trainer. A seed determines everything in a test case, and
// every failure message includes the seed.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "catch.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/training/weight_averaging.hpp"
#include "support/sanitized.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"

// Other source files in this test program also define a class named Run.
namespace checkpoint_random {

using sconce::Checkpoint;
using sconce::CheckpointOptions;
using sconce::test::names_in;

namespace {

namespace fs = std::filesystem;
namespace io = sconce::io;
namespace nn = torch::nn;
namespace optim = sconce::optim;
namespace lr_scheduler = sconce::optim::lr_scheduler;
using Names = std::vector<std::string>;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // Returns a number from `least` to `most`, inclusive.
  int64_t number(int64_t least, int64_t most) {
    const auto count = static_cast<uint64_t>(most - least + 1);
    return least + static_cast<int64_t>(engine_() % count);
  }
  bool one_in(int64_t count) { return number(1, count) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[number(0, static_cast<int64_t>(choices.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

// Returns an in-memory folder, if available, because syncing each checkpoint to a disk is slow.
fs::path quick_place() {
  return ::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// Returns a path in `folder` for checkpoints, with a name that a user or an attacker might choose.
fs::path odd_place(Random& random, const fs::path& folder) {
  const auto name = random.one_of<std::string>({"plain",
                                                "with spaces ",
                                                " ",
                                                "-rf",
                                                "--",
                                                "größe €",
                                                "日本語",
                                                "🔥",
                                                "e\u0301",
                                                ".hidden",
                                                "a.b..c.",
                                                "...",
                                                "checkpoint-000001-00000000.pt",
                                                "best.pt",
                                                "x.part",
                                                "100%s%n",
                                                "a\nb",
                                                "quote'\"",
                                                "back\\slash",
                                                "*?[a]",
                                                "$HOME",
                                                "not \xff utf-8",
                                                std::string(255, 'l')});
  const auto end = random.one_of<std::string>({"", "", "/", "//", "/.", "/../again", "/deep/er"});
  if (!random.one_in(8)) return folder / (name + end);
  fs::create_directory(folder / "behind a link");
  fs::create_directory_symlink("behind a link", folder / "link");
  return folder / "link";
}

// The settings of a fit. Two fits with the same settings must have bitwise identical results.
struct Settings {
  explicit Settings(uint64_t case_seed) : seed(case_seed), random(case_seed) {
    options.max_epochs = static_cast<int>(random.number(1, 4));
    options.gradient_clip_val = random.one_of({0.0, 0.0, 0.3, 2.0});
    options.accumulate_grad_batches = static_cast<int>(random.one_of({1, 1, 2, 3}));
    options.precision = random.one_of({sconce::amp::Precision::fp32, sconce::amp::Precision::fp32,
                                       sconce::amp::Precision::bf16, sconce::amp::Precision::fp16});
    const int64_t batches = (rows + (drop_last ? 0 : batch_size - 1)) / batch_size;
    const int64_t accumulated = options.accumulate_grad_batches;
    batches_per_epoch = batches;
    steps_per_epoch = (batches + accumulated - 1) / accumulated;
    // BatchNorm rejects a batch of one row.
    if (norm == 1 && (batch_size == 1 || (!drop_last && rows % batch_size == 1))) norm = 2;
  }
  int64_t steps() const { return steps_per_epoch * options.max_epochs; }

  uint64_t seed;
  Random random;
  int64_t rows = random.number(6, 20);
  int64_t batch_size = random.number(1, 6);
  bool shuffle = random.one_in(2);
  bool drop_last = random.one_in(2);
  bool has_test = !random.one_in(4);
  bool has_dropout = random.one_in(2);
  int64_t norm = random.number(0, 2);     // none, BatchNorm, LayerNorm
  int64_t trained = random.number(0, 3);  // all, all but a frozen layer, only the head, all
  int64_t optimizer = random.number(0, 6);
  int64_t scheduler = random.number(0, 8);
  bool steps_scheduler = random.one_in(2);
  int64_t average = random.number(0, 3);  // 0 and 1: none, 2: parameters, 3: buffers too
  int64_t every_n_train_steps = random.number(0, 3);
  double end_factor = random.one_of({1.0, 0.1, 0.0});
  optim::Kernels kernels = random.one_of({optim::Kernels::automatic, optim::Kernels::fused,
                                          optim::Kernels::foreach, optim::Kernels::for_loop});
  bool momentum = random.one_in(2);
  sconce::TrainerOptions options = {.num_gpus = 0};
  int64_t batches_per_epoch = 0;
  int64_t steps_per_epoch = 0;
};

// All objects that one process uses for its part of a fit.
class Run {
 public:
  // The model is initialized with random numbers from `init_seed`. A run with fewer epochs performs
  // only the first epochs of the complete run.
  Run(const Settings& of_run, uint64_t init_seed, std::optional<int> epochs = {})
      : settings(of_run), trainer(options(of_run, epochs)) {
    torch::manual_seed(settings.seed);
    rows_ = {torch::randn({settings.rows, 4}), torch::randint(3, {settings.rows})};
    torch::manual_seed(init_seed);
    make_model();
    make_optimizer();
    scheduler = make_scheduler();
    if (settings.average > 1) {
      ema.emplace(*net, optim::ExponentialMovingAverageOptions{
                            .decay = 0.9, .use_buffers = settings.average == 3});
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  sconce::data::Batches test() const { return sconce::data::Batches(rows_, {.batch_size = 7}); }

  sconce::FitResult fit(Checkpoint* checkpoint = nullptr,
                        const std::function<bool()>& should_stop = {}) {
    using sconce::SchedulerInterval;
    const sconce::data::Batches train(rows_, {.batch_size = settings.batch_size,
                                              .shuffle = settings.shuffle,
                                              .drop_last = settings.drop_last,
                                              .seed = settings.seed});
    sconce::FitData data = {.train = train};
    if (settings.has_test) data.test = test();
    std::optional<sconce::ModelCheckpoint> saving;
    if (checkpoint != nullptr)
      data.callbacks.push_back(&saving.emplace(
          *checkpoint,
          sconce::ModelCheckpointOptions{.every_n_train_steps = settings.every_n_train_steps}));
    std::optional<sconce::LRScheduling> scheduling;
    if (scheduler != nullptr) {
      const auto interval =
          settings.steps_scheduler ? SchedulerInterval::step : SchedulerInterval::epoch;
      data.callbacks.push_back(&scheduling.emplace(*scheduler, interval));
    }
    std::optional<sconce::WeightAveraging> averaging;
    if (ema) data.callbacks.push_back(&averaging.emplace(*ema));
    sconce::test::StopWhen stopping(should_stop);
    if (should_stop) data.callbacks.push_back(&stopping);
    return trainer.fit(net, *optimizer, data);
  }

  sconce::NamedStates parts() {
    sconce::NamedStates parts = {
        {"model", *net}, {"optimizer", *optimizer}, {"scaler", trainer.scaler()}};
    if (scheduler != nullptr) parts.emplace_back("scheduler", *scheduler);
    if (ema) parts.emplace_back("ema", *ema);
    return parts;
  }

  // Serializes everything that the fit has computed, along with the random numbers that would be
  // drawn next.
  std::string outcome(const sconce::FitResult& result, const fs::path& file) {
    auto all = c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
    all.insert("model", io::as_ivalue(sconce::nn::state_dict(*net)));
    all.insert("optimizer", optimizer->state_dict());
    if (scheduler != nullptr) all.insert("scheduler", scheduler->state_dict());
    all.insert("scaler", trainer.scaler().state_dict());
    if (ema) all.insert("ema", io::as_ivalue(ema->state_dict()));
    all.insert("random", torch::rand({3}));
    c10::impl::GenericList metrics(c10::AnyType::get());
    for (const auto& epoch : result.epochs) {
      metrics.push_back(int64_t{epoch.epoch});
      metrics.push_back(epoch.loss);
      for (const auto& [name, value] : epoch.metrics) metrics.push_back(value);
      metrics.push_back(epoch.examples);
    }
    all.insert("metrics", metrics);
    io::save_torch(file, all);
    return sconce::test::contents(file);
  }

  const Settings& settings;
  sconce::Trainer trainer;
  nn::Sequential net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::shared_ptr<lr_scheduler::LRScheduler> scheduler;
  std::optional<optim::ExponentialMovingAverage> ema;

 private:
  static sconce::TrainerOptions options(const Settings& settings, std::optional<int> epochs) {
    auto changed = settings.options;
    if (epochs) changed.max_epochs = *epochs;
    return changed;
  }

  void make_model() {
    net->push_back(nn::Linear(4, 5));
    if (settings.norm == 1) net->push_back(nn::BatchNorm1d(5));
    if (settings.norm == 2) net->push_back(nn::LayerNorm(nn::LayerNormOptions({5})));
    net->push_back(nn::ReLU());
    if (settings.has_dropout) net->push_back(nn::Dropout(0.3));
    net->push_back(nn::Linear(5, 3));
    if (settings.trained == 1) {
      for (auto& parameter : net[0]->parameters()) parameter.requires_grad_(false);
    }
  }

  void make_optimizer() {
    const auto parameters =
        settings.trained == 2 ? net[net->size() - 1]->parameters() : net->parameters();
    const bool has_fused = settings.optimizer < 5;
    const optim::ExtraOptions extra = {.kernels =
                                           has_fused || settings.kernels != optim::Kernels::fused
                                               ? settings.kernels
                                               : optim::Kernels::automatic};
    const double momentum = settings.momentum ? 0.9 : 0;
    switch (settings.optimizer) {
      case 0:
        optimizer =
            std::make_unique<optim::Adam>(parameters, torch::optim::AdamOptions(0.02), extra);
        break;
      case 1:
        optimizer = std::make_unique<optim::AdamW>(
            parameters, torch::optim::AdamWOptions(0.02).amsgrad(settings.momentum), extra);
        break;
      case 4:
        optimizer = std::make_unique<optim::Adagrad>(
            parameters, torch::optim::AdagradOptions(0.05).lr_decay(0.1), extra);
        break;
      case 5:
        optimizer = std::make_unique<optim::RMSprop>(
            parameters, torch::optim::RMSpropOptions(0.02).momentum(momentum).centered(true),
            extra);
        break;
      case 6:
        optimizer = std::make_unique<optim::NAdam>(parameters, optim::NAdamOptions(0.02), extra);
        break;
      default:
        optimizer = std::make_unique<optim::SGD>(
            parameters, torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(0.01), extra);
    }
  }

  std::shared_ptr<lr_scheduler::LRScheduler> make_scheduler() {
    using namespace lr_scheduler;
    auto& of = *optimizer;
    const int64_t steps =
        settings.steps_scheduler ? settings.steps() : int64_t{settings.options.max_epochs};
    const LinearLROptions linear = {.end_factor = settings.end_factor, .total_iters = steps};
    const bool has_betas = settings.optimizer < 2 || settings.optimizer == 6;
    const bool cycles = has_betas || (settings.momentum && settings.optimizer != 4);
    switch (settings.scheduler) {
      case 0:
        return std::make_shared<StepLR>(of, 2, 0.5);
      case 1:
        return std::make_shared<MultiStepLR>(of, std::vector<int64_t>{1, 3}, 0.5);
      case 2:
        return std::make_shared<ExponentialLR>(of, 0.9);
      case 3:
        return std::make_shared<CosineAnnealingLR>(of, steps);
      case 4:
        return std::make_shared<LinearLR>(of, linear);
      case 5:
        return std::make_shared<OneCycleLR>(
            of, 0.2, OneCycleLROptions{.total_steps = steps + 1, .cycle_momentum = cycles});
      case 6:
        return std::make_shared<LambdaLR>(
            of, [](int64_t epoch) { return 1 / (1 + 0.3 * static_cast<double>(epoch)); });
      case 7: {
        std::vector<std::shared_ptr<GroupLRScheduler>> two;
        two.push_back(std::make_shared<LinearLR>(of, linear));
        two.push_back(std::make_shared<CosineAnnealingLR>(of, steps));
        return std::make_shared<SequentialLR>(of, two, std::vector<int64_t>{2});
      }
      default:
        return nullptr;
    }
  }

  sconce::data::Dataset rows_;
};

// A checkpoint's epoch and batch.
using Place = std::pair<int64_t, int64_t>;

c10::IValue in_file(const fs::path& file, const char* key) {
  return io::load_torch(file).toGenericDict().at(key);
}

Place place_in(const fs::path& file) {
  const auto saved = io::load_torch(file).toGenericDict();
  return {saved.at("epoch").toInt(), saved.at("batch").toInt()};
}

// The checkpoints that a folder is expected to contain, in the order in which they were written. No
// checkpoint overwrites another checkpoint.
struct Kept {
  struct File {
    Place place;
    int64_t number;
    bool operator==(const File&) const = default;
  };
  using Best = std::optional<std::pair<double, File>>;

  // Models the effect of opening the folder with a Checkpoint, which reads the folder and completes
  // the last save.
  void open(const CheckpointOptions& options) {
    best = options.keep_best ? saved_best : Best();
    prune(options, saved_best);
  }
  void save(const Place& place, const CheckpointOptions& options, std::optional<double> metric) {
    files.push_back({place, ++saves});
    if (options.keep_best && metric && !std::isnan(*metric) && (!best || *metric > best->first)) {
      best = {*metric, files.back()};
    }
    saved_best = best;
    prune(options, best);
  }
  void prune(const CheckpointOptions& options, const Best& kept) {
    const auto last = files.end() - std::min<int64_t>(options.keep_last, std::ssize(files));
    const auto is_left = [&](const File& file) { return !kept || file != kept->second; };
    files.erase(std::remove_if(files.begin(), last, is_left), last);
  }

  std::vector<File> files = {};
  int64_t saves = 0;
  Best best = {};        // the best one known to the object
  Best saved_best = {};  // the best in the latest file
};

void check_folder(const Checkpoint& checkpoint, const fs::path& folder, const Kept& kept) {
  std::vector<Place> found, expected;
  bool has_link = false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    has_link = has_link || name == "best.pt";
    CHECK((name == "best.pt" || (name.starts_with("checkpoint-") && name.ends_with(".pt"))));
    if (name.starts_with("checkpoint-")) found.push_back(place_in(entry.path()));
  }
  for (const auto& file : kept.files) expected.push_back(file.place);
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  CHECK(found == expected);
  REQUIRE(checkpoint.latest().empty() == kept.files.empty());
  if (!found.empty()) CHECK(place_in(checkpoint.latest()) == kept.files.back().place);
  REQUIRE(checkpoint.best().empty() == !kept.best);
  if (kept.best) CHECK(place_in(checkpoint.best()) == kept.best->second.place);
  REQUIRE(has_link == kept.saved_best.has_value());
  if (has_link) CHECK(place_in(folder / "best.pt") == kept.saved_best->second.place);
}

struct Killed {};

// A fit that is stopped, killed, and resumed in the same folder.
class StoppedFit {
 public:
  explicit StoppedFit(uint64_t seed) : settings_(seed), random_(settings_.random) {
    Run whole(settings_, seed);
    result_ = whole.fit();
    outcome_ = whole.outcome(result_, temp_.path() / "whole");
    const auto parent = temp_.path() / "runs";
    fs::create_directory(parent);
    folder_ = odd_place(random_, parent);
  }

  void check() {
    for (int64_t parts = random_.number(0, 4); parts > 0; --parts) {
      open();
      interrupt();
      check_folder(*checkpoint_, folder_, kept_);
    }
    open();
    Run run(settings_, init_seed());
    const auto result = run.fit(&*checkpoint_);
    saved_until(settings_.steps());
    CHECK(run.outcome(result, temp_.path() / "resumed") == outcome_);
    check_folder(*checkpoint_, folder_, kept_);
    check_best();
    CHECK(names_in(temp_.path()) == Names{"resumed", "runs", "whole"});
  }

 private:
  // Randomly keeps the existing Checkpoint or creates a new Checkpoint.
  void open() {
    if (!checkpoint_ || random_.one_in(2)) {
      checkpoint_.reset();
      options_ = {.resume = !kept_.files.empty() || random_.one_in(2),
                  .keep_last = static_cast<int>(random_.number(1, 3)),
                  .keep_best = !random_.one_in(4)};
      checkpoint_.emplace(folder_, options_);
    }
    done_ = 0;
    if (!options_.resume || kept_.files.empty()) return;
    kept_.open(options_);
    const auto [epoch, batch] = kept_.files.back().place;
    done_ = epoch * settings_.steps_per_epoch + batch / settings_.options.accumulate_grad_batches;
  }

  // If the first part of a fit is killed before its first save, the repeated part must use the same
  // seed. After a resume, the initial values do not matter, so the seed varies.
  uint64_t init_seed() { return done_ == 0 ? settings_.seed : settings_.seed + 1 + done_; }

  void interrupt() {
    const int64_t asks = random_.number(1, settings_.steps());
    const int64_t reads = random_.number(1, 2 * settings_.steps());
    const auto kind = random_.number(0, 2);  // asked to stop, killed, or run for fewer epochs
    const auto epochs = static_cast<int>(random_.number(1, settings_.options.max_epochs));
    const int64_t start = done_;
    int64_t asked = 0;
    Run run(settings_, init_seed(), kind == 2 ? std::optional(epochs) : std::nullopt);
    const auto should_stop = [&] {
      ++asked;
      if (asked == reads) read_beside();
      if (kind == 2 || asked < asks) return false;
      if (kind == 1) throw Killed();
      return true;
    };
    INFO("part from step " << start << ", kind " << kind << ", asks " << asks << ", " << epochs
                           << " epochs");
    const int64_t reached = std::min(start + asks, settings_.steps());
    try {
      const auto result = run.fit(&*checkpoint_, should_stop);
      CHECK(result.stopped == (kind == 0 && reached < settings_.steps() && asked == asks));
      if (kind == 0) saved_until(reached, asked == asks);
      if (kind == 1) saved_until(settings_.steps());
      if (kind == 2) saved_until(epochs * settings_.steps_per_epoch);
    } catch (const Killed&) {
      saved_until(reached - 1);
    }
  }

  // Records the checkpoints that the fit saves up to and including `step`. If a save was requested
  // at `step`, the requested checkpoint is recorded as well.
  void saved_until(int64_t step, bool is_asked = false) {
    const int64_t of_epoch = settings_.steps_per_epoch;
    const int64_t every = settings_.every_n_train_steps;
    for (int64_t i = done_ + 1; i <= step; ++i) {
      const int64_t within = i % of_epoch;
      const bool is_time = every > 0 && within % every == 0;
      if (within > 0 && !is_time && !(is_asked && i == step)) continue;
      std::optional<double> metric;
      const auto& epoch = result_.epochs[static_cast<size_t>((i - 1) / of_epoch)];
      if (within == 0 && epoch.contains("test_acc")) metric = epoch.at("test_acc");
      kept_.save({i / of_epoch, within * settings_.options.accumulate_grad_batches}, options_,
                 metric);
      done_ = i;
    }
  }

  // A second Checkpoint may read the folder at any time without affecting the Checkpoint that
  // writes to it.
  void read_beside() {
    auto generator = at::globalContext().defaultGenerator(torch::kCPU);
    const auto state = generator.get_state();
    Run other(settings_, 1);
    Checkpoint reader(folder_, {.resume = true});
    CHECK(reader.load(other.parts()).has_value() == !reader.latest().empty());
    generator.set_state(state);
  }

  // The weights of the best checkpoint, or their averages, must reproduce the recorded metric.
  void check_best() {
    if (!kept_.best) return;
    Run judge(settings_, 1);
    const auto file = checkpoint_->best();
    sconce::nn::load_state_dict(*judge.net, io::as_state_dict(in_file(file, "model")));
    std::optional<optim::ExponentialMovingAverage::SwapGuard> averages;
    if (judge.ema) {
      judge.ema->load_state_dict(io::as_state_dict(in_file(file, "ema")));
      averages.emplace(*judge.ema);
    }
    CHECK(judge.trainer.evaluate(judge.net, judge.test()).at("acc") == kept_.best->first);
  }

  const sconce::test::TempDir temp_{quick_place()};
  Settings settings_;
  Random& random_;
  sconce::FitResult result_;  // of the uninterrupted fit
  std::string outcome_;
  fs::path folder_;
  CheckpointOptions options_ = {};
  std::optional<Checkpoint> checkpoint_;
  Kept kept_;
  int64_t done_ = 0;  // steps in the latest checkpoint
};

// Tests a Checkpoint without a trainer, with progress and metrics in arbitrary order. Each save has
// a unique number.
void check_saves(uint64_t seed) {
  const sconce::test::TempDir temp(quick_place());
  Random random(seed);
  const auto folder = odd_place(random, temp.path());
  CheckpointOptions options;
  std::optional<Checkpoint> checkpoint;
  Kept kept;
  const int64_t saves = random.number(1, 10);
  for (int64_t i = 1; i <= saves; ++i) {
    INFO("save " << i);
    if (!checkpoint || random.one_in(3)) {
      checkpoint.reset();
      options = {.resume = i > 1 || random.one_in(2),
                 .keep_last = static_cast<int>(random.number(1, 3)),
                 .keep_best = !random.one_in(4)};
      checkpoint.emplace(folder, options);
      const auto progress = checkpoint->load({});
      REQUIRE(progress.has_value() == (i > 1));
      if (progress) CHECK(progress->extra == c10::IValue(i - 1));
      kept.open(options);
    }
    std::ofstream(folder / "checkpoint-000001-00000001.pt.4711-0.part") << "of a killed writer";
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    const auto metric = random.one_of<std::optional<double>>(
        {{}, nan, -infinity, -1.5, 0.0, 0.5, 0.5, 0.75, infinity});
    const Place place = {random.number(0, 3), random.number(0, 2)};
    checkpoint->save({}, {.epoch = place.first, .batch = place.second, .extra = i}, metric);
    kept.save(place, options, metric);
    check_folder(*checkpoint, folder, kept);
    CHECK(in_file(checkpoint->latest(), "extra") == c10::IValue(i));
    if (kept.best) {
      CHECK(in_file(checkpoint->best(), "extra") == c10::IValue(kept.best->second.number));
    }
  }
}

void check_fits(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    StoppedFit(seed).check();
  }
}

void check_saves(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("seed " << seed);
    check_saves(seed);
  }
}

}  // namespace

TEST_CASE(
    "100 random fits that are stopped and resumed at random points match uninterrupted fits") {
  check_fits(0, sconce::test::rounds(100, 30));
}

TEST_CASE(
    "across 100 random save sequences, latest returns the last checkpoint written, and the best "
    "checkpoint is kept") {
  check_saves(0, 100);
}

TEST_CASE(
    "10,000 random fits that are stopped and resumed at random points match uninterrupted fits",
    "[.][slow]") {
  check_fits(100, 10'000);
}

TEST_CASE(
    "across 10,000 random save sequences, latest returns the last checkpoint written, and the best "
    "checkpoint is kept",
    "[.][slow]") {
  check_saves(100, 10'000);
}

}  // namespace checkpoint_random
