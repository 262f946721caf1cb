#include <algorithm>
#include <random>

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "support/ask_python.hpp"

using sconce::optim::Kernels;
using sconce::test::Result;
using sconce::test::TempDir;

// Compares random runs of sconce's optimizers and schedules with the same runs in
// tests/reference/optim_random.py. One line of text defines each run for both C++ and Python.
namespace {

const std::vector<std::vector<int64_t>> random_sizes = {{3, 5},    {67}, {},      {4, 4},
                                                        {2, 3, 4}, {1},  {40, 33}};

// A run's random properties, which are drawn before its events.
struct Plan {
  std::string name = {};
  std::string kind = {};
  torch::ScalarType dtype = torch::kFloat;
  std::string dtype_name = {};
  Kernels kernels = Kernels::fused;
  bool maximize = false;
  sconce::test::RandomOptions options = {};
  int schedule = 0;
  std::vector<std::string> events = {};
};

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<uint32_t>(limit)); }
  bool one_of(int count) { return below(count) == 0; }

 private:
  std::mt19937 engine_;
};

const std::vector<std::string> random_schedules = {"None",
                                                   "StepLR(o, 3, 0.5)",
                                                   "ExponentialLR(o, 0.875)",
                                                   "LinearLR(o, 1 / 3, 0.0, 5)",
                                                   "CosineAnnealingLR(o, 7, 0.001)",
                                                   "OneCycleLR(o, 0.05, 90, pct_start=0.4)",
                                                   "CosineAnnealingWarmRestarts(o, 3, 2, 0.001)",
                                                   "ConstantLR(o, 0.5, 4)",
                                                   "PolynomialLR(o, 9, 1.5)"};

constexpr int cycle = 5;  // the position of OneCycleLR

std::vector<std::string> draw_events(Dice& dice, bool has_schedule) {
  int parameters = 4;
  int files = 0;
  std::vector<std::string> events;
  const int count = 8 + dice.below(25);
  for (int i = 0; i < count; ++i) {
    const int which = dice.below(parameters);
    const int size = dice.below(static_cast<int>(random_sizes.size()));
    const int seed = 3000 + 100 * i;
    switch (dice.below(18)) {
      case 0:
        events.push_back(c10::str("freeze ", which));
        break;
      case 1:
        events.push_back(c10::str("thaw ", which));
        break;
      case 2:
        events.push_back(c10::str("resize ", which, " ", size, " ", seed));
        break;
      case 3:
      case 4:
        events.push_back(c10::str("turn ", which));
        break;
      case 5:
        events.push_back("save");
        break;
      case 6:
        events.push_back(c10::str("to_python ", files++));
        break;
      case 7:
        events.push_back(c10::str("to_cpp ", files++));
        break;
      case 8:
      case 9:
        if (has_schedule) {  // Python schedules cover only the initial groups
          events.emplace_back("schedule");
        } else if (dice.one_of(2)) {
          events.push_back(c10::str("set_lr 0.0", 1 + dice.below(9)));
        } else {
          events.push_back(c10::str("add ", size, " ", seed, " 0.125"));
          ++parameters;
        }
        break;
      default:
        events.push_back(c10::str("step ", seed));
    }
  }
  return events;
}

using Names = std::vector<std::string>;

Kernels draw_kernels(Dice& dice, const sconce::test::Kind& kind) {
  std::vector<Kernels> all;
  for (const auto kernels : {Kernels::foreach, Kernels::for_loop, Kernels::fused}) {
    if (kind.has(kernels)) all.push_back(kernels);
  }
  return all[static_cast<size_t>(dice.below(static_cast<int>(all.size())))];
}

Plan draw(uint32_t seed, const Names& names) {
  Dice dice(seed);
  Plan plan;
  plan.name = "run" + std::to_string(seed);
  plan.kind = names[static_cast<size_t>(dice.below(static_cast<int>(names.size())))];
  plan.kernels = draw_kernels(dice, sconce::test::kind_named(plan.kind));
  const std::vector<std::pair<torch::ScalarType, std::string>> types = {
      {torch::kFloat, "float32"},
      {torch::kDouble, "float64"},
      {torch::kBFloat16, "bfloat16"},
      {torch::kHalf, "float16"},
      {torch::kComplexFloat, "complex64"}};
  // With LibTorch 2.11, fused SGD in C++ and in Python may compute different 16-bit momentum
  // buffers.
  const int count = TORCH_VERSION_MINOR < 15 ? 2 : plan.kernels == Kernels::fused ? 4 : 5;
  std::tie(plan.dtype, plan.dtype_name) = types[static_cast<size_t>(dice.below(count))];
  plan.maximize = dice.one_of(3);
  auto& o = plan.options;
  o.flag = dice.one_of(3);
  o.weight_decay = dice.one_of(2) ? 0.125 : 0;
  o.lr = dice.one_of(2) ? 0.1 : 0.03;
  const bool is_sgd = plan.kind == "SGD", is_adagrad = plan.kind == "Adagrad";
  const bool may_lack_momentum = is_sgd ? !o.flag : is_adagrad || plan.kind == "RMSprop";
  o.first = may_lack_momentum && dice.one_of(3) ? 0 : 0.75;
  o.second = !is_sgd && !is_adagrad ? 0.95 : !o.flag && dice.one_of(2) ? 0.25 : 0;
  plan.schedule = dice.below(static_cast<int>(random_schedules.size()));
  const bool has_momentum = !is_adagrad && plan.kind != "Adadelta";
  if (!has_momentum && plan.schedule == cycle) plan.schedule = 0;  // there is no momentum to cycle
  plan.events = draw_events(dice, plan.schedule != 0);
  return plan;
}

std::string line_of(const Plan& plan) {
  static const std::map<Kernels, std::string> modes = {{Kernels::fused, "fused=True"},
                                                       {Kernels::foreach, "foreach=True"},
                                                       {Kernels::for_loop, "foreach=False"}};
  std::ostringstream line;
  line << plan.name << "|" << plan.kind << "|" << plan.dtype_name << "|lr=" << plan.options.lr
       << ", weight_decay=" << plan.options.weight_decay
       << ", maximize=" << (plan.maximize ? "True" : "False") << ", " << modes.at(plan.kernels)
       << ", " << sconce::test::kind_named(plan.kind).python_arguments(plan.options);
  line << "|" << random_schedules[static_cast<size_t>(plan.schedule)] << "|";
  for (const auto& event : plan.events) line << event << ";";
  return line.str();
}

// A run in progress. optim_random.py contains the corresponding class with the same name.
class RandomRun {
 public:
  RandomRun(const Plan& plan, const TempDir& folder, bool from_python)
      : plan_(plan), folder_(folder), from_python_(from_python), groups_(2) {
    for (int i = 0; i < 4; ++i) {
      groups_[static_cast<size_t>(i % 2)].push_back(fresh(static_cast<size_t>(i), 1000 + i));
    }
    make();
    for (const auto& event : plan.events) happen(event);
  }

  Result result() const { return sconce::test::result_of(*optimizer_, parameters()); }

 private:
  torch::Tensor fresh(size_t size, int64_t seed) const {
    return sconce::test::numbers(seed, random_sizes[size], plan_.dtype).requires_grad_();
  }

  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> all;
    for (const auto& group : groups_) all.insert(all.end(), group.begin(), group.end());
    return all;
  }

  void make() {
    sconce::test::Groups groups;
    for (const auto& group : groups_) groups.emplace_back(group);
    schedule_.reset();
    optimizer_ = sconce::test::kind_named(plan_.kind)
                     .make_random(groups, plan_.options,
                                  {.kernels = plan_.kernels, .maximize = plan_.maximize});
    make_schedule();
  }

  void make_schedule() {
    using namespace sconce::optim::lr_scheduler;
    auto& o = *optimizer_;
    switch (plan_.schedule) {
      case 1:
        schedule_ = std::make_unique<StepLR>(o, 3, 0.5);
        break;
      case 2:
        schedule_ = std::make_unique<ExponentialLR>(o, 0.875);
        break;
      case 3:
        schedule_ = std::make_unique<LinearLR>(o, LinearLROptions{.end_factor = 0});
        break;
      case 4:
        schedule_ = std::make_unique<CosineAnnealingLR>(o, 7, 0.001);
        break;
      case 5:
        schedule_ = std::make_unique<OneCycleLR>(
            o, 0.05, OneCycleLROptions{.total_steps = 90, .pct_start = 0.4});
        break;
      case 6:
        schedule_ = std::make_unique<CosineAnnealingWarmRestarts>(o, 3, 2, 0.001);
        break;
      case 7:
        schedule_ = std::make_unique<ConstantLR>(o, 0.5, 4);
        break;
      case 8:
        schedule_ = std::make_unique<PolynomialLR>(o, 9, 1.5);
        break;
      default:
        break;
    }
  }

  c10::impl::GenericDict states() const {
    c10::impl::GenericDict all(c10::StringType::get(), c10::AnyType::get());
    all.insert("optimizer", optimizer_->state_dict());
    c10::IValue schedule = c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
    if (schedule_) schedule = schedule_->state_dict();
    all.insert("schedule", schedule);
    all.insert("parameters", c10::List<torch::Tensor>(parameters()));
    return all;
  }

  void load(const c10::impl::GenericDict& states) {
    const auto before = std::move(optimizer_);  // a schedule must not outlive its optimizer
    make();
    optimizer_->load_state_dict(states.at("optimizer"));
    if (schedule_) schedule_->load_state_dict(states.at("schedule"));
  }

  void take_over(const std::filesystem::path& file) {
    const auto saved = sconce::io::load_torch(file).toGenericDict();
    const auto values = saved.at("parameters").toListRef().vec();
    const auto all = parameters();
    for (size_t i = 0; i < all.size(); ++i) become(i, values.at(i).toTensor());
    load(saved);
  }

  void become(size_t index, const torch::Tensor& data) {
    auto parameter = parameters().at(index);
    parameter.mutable_grad() = torch::Tensor();
    parameter.set_data(data);
  }

  void step(int64_t seed) {
    auto all = parameters();
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].mutable_grad() =
          frozen_.contains(i)
              ? torch::Tensor()
              : sconce::test::numbers(seed + static_cast<int64_t>(i), all[i].sizes(), plan_.dtype);
    }
    optimizer_->step();
  }

  void resize(size_t index, size_t size, int64_t seed) {
    become(index, fresh(size, seed).detach());
    optimizer_->state().erase(parameters()[index].unsafeGetTensorImpl());
  }

  void add(size_t size, int64_t seed, double lr) {
    groups_.push_back({fresh(size, seed)});
    optimizer_->add_param_group(torch::optim::OptimizerParamGroup(groups_.back()));
    optimizer_->param_groups().back().options().set_lr(lr);
  }

  void happen(const std::string& event) {
    std::istringstream words(event);
    std::string verb;
    double a = 0, b = 0, c = 0;
    words >> verb >> a >> b >> c;
    const auto index = static_cast<size_t>(a);
    const auto file = plan_.name + "." + std::to_string(index);
    if (verb == "step") step(static_cast<int64_t>(a));
    if (verb == "schedule") schedule_->step();
    if (verb == "freeze") frozen_.insert(index);
    if (verb == "thaw") frozen_.erase(index);
    if (verb == "resize") resize(index, static_cast<size_t>(b), static_cast<int64_t>(c));
    if (verb == "add") add(index, static_cast<int64_t>(b), c);
    if (verb == "turn") {
      const auto data = parameters()[index].detach();
      become(index, data.dim() > 1 ? data.transpose(0, -1).contiguous().transpose(0, -1) : data);
    }
    if (verb == "set_lr") {
      for (auto& group : optimizer_->param_groups()) group.options().set_lr(a);
    }
    if (verb == "to_python") sconce::io::save_torch(folder_.path() / (file + ".pt"), states());
    if (verb == "save" || verb == "to_python" || (verb == "to_cpp" && !from_python_)) {
      load(states());
    } else if (verb == "to_cpp") {
      take_over(folder_.path() / (file + ".python.pt"));
    }
  }

  const Plan& plan_;
  const TempDir& folder_;
  bool from_python_;  // resumes from the files that Python wrote
  std::vector<std::vector<torch::Tensor>> groups_;
  std::set<size_t> frozen_ = {};
  std::unique_ptr<sconce::optim::Optimizer> optimizer_ = {};
  std::unique_ptr<sconce::optim::lr_scheduler::LRScheduler> schedule_ = {};
};

// Compares one line of Python output with the result of the same run in C++.
void check_line(Result& ours, const std::string& key, const std::string& rest) {
  if (key.starts_with("group.")) {
    if (!key.ends_with(".foreach") && !key.ends_with(".fused")) CHECK(ours.options[key] == rest);
    return;
  }
  REQUIRE(ours.tensors.contains(key));
  const auto expected = sconce::test::from_hex(rest, ours.tensors[key]);
  CHECK((TORCH_VERSION_MINOR < 15 ? sconce::test::close(ours.tensors[key], expected)
                                  : sconce::test::same_bits(ours.tensors[key], expected)));
  ours.tensors.erase(key);
}

void compare_random_runs(uint32_t first_seed, uint32_t count, const Names& names) {
  const TempDir folder;
  std::map<std::string, Plan> plans;
  std::map<std::string, Result> ours;
  std::ofstream lines(folder.path() / "cases");
  for (uint32_t seed = first_seed; seed < first_seed + count; ++seed) {
    const Plan plan = draw(seed, names);
    plans[plan.name] = plan;
    INFO(line_of(plan));
    lines << line_of(plan) << "\n";
    ours[plan.name] = RandomRun(plan, folder, false).result();
  }
  lines.close();

  auto answer = sconce::test::ask_python(folder, "optim_random.py", "results");
  std::string name;
  auto left = ours;
  for (std::string line; std::getline(answer, line);) {
    const auto blank = line.find(' ');
    if (line.starts_with("= ")) {
      name = line.substr(2);
      continue;
    }
    INFO(line_of(plans.at(name)) << "\n" << line.substr(0, blank));
    check_line(left.at(name), line.substr(0, blank), line.substr(blank + 1));
  }
  for (const auto& [of_run, plan] : plans) {
    INFO(line_of(plan));
    CHECK(left.at(of_run).tensors.empty());
    const auto again = RandomRun(plan, folder, true).result();
    CHECK(again.options == ours.at(of_run).options);
    CHECK(again.tensors.size() == ours.at(of_run).tensors.size());
    for (const auto& [key, tensor] : ours.at(of_run).tensors) {
      INFO(key);
      CHECK(sconce::test::same_bits(again.tensors.at(key), tensor));
    }
  }
}

// With LibTorch 2.11, the Python Adagrad class does not create state for parameters that are added
// later or that lose their state.
const Names first_six = TORCH_VERSION_MINOR < 15
                            ? Names{"SGD", "Adam", "AdamW", "RMSprop", "NAdam"}
                            : Names{"SGD", "Adam", "AdamW", "RMSprop", "NAdam", "Adagrad"};

// Returns all optimizer classes added by the test files.
Names all_names() {
  Names names;
  for (const auto& kind : sconce::test::kinds()) {
    if (TORCH_VERSION_MINOR >= 15 || kind.name != "Adagrad") names.push_back(kind.name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE(
    "100 random runs of optimizers and schedules match Python, even when they alternate between "
    "C++ and Python",
    "[python]") {
  compare_random_runs(1500, 100, first_six);
}

TEST_CASE("10,000 random runs of optimizers and schedules match Python", "[.][slow]") {
  for (uint32_t part = 0; part < 20; ++part) {
    DYNAMIC_SECTION("part " << part) {
      compare_random_runs(500 * part, 500, first_six);
    }
  }
}

TEST_CASE("random runs of every optimizer match Python", "[python]") {
  compare_random_runs(1500, 120, all_names());
}

TEST_CASE("1,000 random runs of each optimizer match Python", "[.][slow]") {
  for (const auto& name : all_names()) {
    for (uint32_t part = 0; part < 2; ++part) {
      DYNAMIC_SECTION(name << " part " << part) {
        compare_random_runs(500 * part, 500, {name});
      }
    }
  }
}
