// Runs the events in a script.
#include <ATen/CPUGeneratorImpl.h>

#include <sstream>

#include "sconce/io/torch_file.hpp"
#include "trainer_scripts/optimizers.hpp"
#include "trainer_scripts/world.hpp"

namespace trainer_scripts {

namespace {

using sconce::Fit;

// Maps an error message to the name that oracle.py uses for the error.
std::string name_of(const std::string& error) {
  static const std::vector<std::pair<std::string, std::string>> names = {
      {"to have unique names", "names"},
      {"Expected more than 1 value per channel", "one value"},
      {"got no batch", "no batch"},
      {"expected callbacks, got null", "null"},
      {"no parameter has a gradient", "no gradient"},
      {"expected monitor to be one of", "monitor"},
      {"element 0 of tensors does not require grad", "frozen"},
      {"checked gradients for inf since the last update", "no check for inf"},
      {"expected a gradient to check for inf", "no gradient"},
      {"expected a batch index from 0", "batch index"},
  };
  for (const auto& [text, name] : names) {
    if (error.find(text) != std::string::npos) return name;
  }
  const auto bad = error.find("bad item ");
  if (bad != std::string::npos) return "item " + std::to_string(std::stoll(error.substr(bad + 9)));
  return error.substr(0, error.find('\n'));
}

// Returns the trace text for the exception currently being handled.
std::string current_exception() {
  try {
    throw;
  } catch (const Planned&) {
    return "planned";
  } catch (const BadItem& bad) {
    return "item " + std::to_string(bad.item);
  } catch (const c10::Error& error) {
    return name_of(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return name_of(error.what());
  }
}

std::string values_of(const sconce::MetricValues& values) {
  std::string text;
  for (const auto& [name, value] : values) text += " " + name + " " + number(value);
  return text;
}

std::string text_of(const sconce::EpochMetrics& epoch) {
  return "epoch " + std::to_string(epoch.epoch) + " loss " + number(epoch.loss) +
         values_of(epoch.metrics) + " examples " + std::to_string(epoch.examples);
}

void trace_sums(const sconce::Metrics& metrics, Trace& trace) {
  for (const auto& [name, metric] : metrics) trace.line(name + " " + numbers(metric->sums()));
}

// Traces the loop's next batch, and returns false if the loop has no more batches.
bool trace_batch(const Loop& loop, Trace& trace) {
  const auto batch = loop.next();
  if (!batch) return false;
  trace.line("items " + items_of(batch->data));
  trace.tensors("data", {batch->data, batch->target});
  return true;
}

// Copies each module's training mode and each parameter's requires_grad flag to a clone, because
// LibTorch's `clone` does not preserve these settings.
void match_modes(const Net& original, const Net& clone) {
  const auto from = original->modules(), to = clone->modules();
  for (size_t i = 0; i < from.size(); ++i) to[i]->train(from[i]->is_training());
  const auto old = original->parameters(), copies = clone->parameters();
  for (size_t i = 0; i < old.size(); ++i) copies[i].requires_grad_(old[i].requires_grad());
}

torch::Tensor random_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  return generator.get_state();
}

}  // namespace

void World::run() {
  build(script_.at("seed"), /*resume=*/false);
  trace_state();
  for (const auto& event : script_.at("events")) {
    happen(event, nullptr);
    trace_state();
  }
}

void World::happen(const json& event, Fit* fit) {
  trace_.line("> " + event.at("do").get<std::string>());
  const int depth = trace_.depth++;
  try {
    act(event, fit);
    trace_.depth = depth;
  } catch (...) {
    trace_.depth = depth;
    trace_.line("! " + current_exception());
    if (fit != nullptr && !event.value("catch", false)) throw;
  }
}

void World::in_hook(const json& recorder, size_t index, const std::string& hook, int64_t call,
                    Fit& fit) {
  const std::string loss = fit.loss.defined() ? number(fit.loss.item<double>()) : "-";
  trace_.line("callback " + std::to_string(index) + " " + hook + " epochs " +
              std::to_string(fit.epochs.size()) + "/" + std::to_string(fit.max_epochs) + " batch " +
              std::to_string(fit.batch) + "/" + std::to_string(fit.num_training_batches) +
              " loss " + loss + (fit.is_stopping() ? " stops" : ""));
  if (hook == "on_epoch_end" || hook == "on_test_end") trace_.line(text_of(fit.epochs.back()));
  trace_sums(trainers_.at(running_.back()).metrics, trace_);
  for (const auto& event : recorder.value("events", json::array())) {
    if (event.at("hook") == hook && event.at("call") == call) happen(event, &fit);
  }
}

void World::act(const json& event, Fit* fit) {
  const std::string what = event.at("do");
  if (what == "throw") throw Planned();
  if (what == "stop") fit->stop();
  if (what == "draw") trace_.line(numbers(torch::rand({3})));
  if (what == "restart") build(event.at("seed"), /*resume=*/true);
  if (what == "fit") return this->fit(event);
  if (what == "loop") return loop(event);
  if (what == "two_loops") return two_loops(event);
  if (what == "new_head") return new_head(event.at("model"));
  if (what == "copy_model") return copy_model(event);
  if (what == "set_epoch") loaders_.at(event.at("loader"))->set_epoch(event.at("epoch"));
  if (what == "copy_loader") loaders_.push_back(loaders_.at(event.at("loader"))->copy());
  if (what == "eval_mode") models_.at(event.at("model"))->body->eval();
  if (what == "freeze") {
    const auto parameters = models_.at(event.at("model"))->parameters();
    parameters.at(event.at("parameter").get<size_t>() % parameters.size())
        .requires_grad_(event.at("thaw"));
  }
  if (event.contains("optimizer")) change_optimizer(what, event);
  if (what == "evaluate") {
    auto& of = trainers_.at(event.at("trainer"));
    const auto loader = loaders_.at(event.at("loader"))->for_trainer();
    trace_.line("result" + values_of(of.trainer->evaluate(models_.at(event.at("model")), loader)));
  }
  if (what == "fit_epoch") {
    auto& of = trainers_.at(event.at("trainer"));
    auto& optimizer = optimizers_.at(event.at("optimizer"));
    const auto loader = loaders_.at(event.at("train"))->for_trainer();
    auto& model = models_.at(event.value("model", optimizer.model));
    trace_.line("result " + text_of(of.trainer->fit_epoch(model, *optimizer.optimizer, loader)));
  }
}

void World::fit(const json& event) {
  auto& of = trainers_.at(event.at("trainer"));
  auto& optimizer = optimizers_.at(event.at("optimizer"));
  sconce::FitData data = {.train = loaders_.at(event.at("train"))->for_trainer()};
  if (event.contains("test")) data.test = loaders_.at(event.at("test"))->for_trainer();
  for (const size_t index : event.at("callbacks")) {
    data.callbacks.push_back(callbacks_.at(index).get());
  }
  running_.push_back(event.at("trainer"));
  const std::shared_ptr<void> ends(nullptr, [this](void*) { running_.pop_back(); });
  auto& model = models_.at(event.value("model", optimizer.model));
  const auto result = of.trainer->fit(model, *optimizer.optimizer, data);
  trace_.line(std::string("result") + (result.stopped ? " stopped" : ""));
  for (const auto& epoch : result.epochs) trace_.line(text_of(epoch));
}

void World::loop(const json& event) {
  std::optional<Start> start;
  if (event.contains("epoch")) start = {event.at("batch"), event.at("epoch")};
  const auto loop = loaders_.at(event.at("loader"))->begin(start);
  try {
    for (int64_t left = event.value("batches", 1000); left > 0; --left) {
      if (!trace_batch(loop, trace_)) break;
    }
  } catch (...) {
    const auto item = loop.failed_item();
    if (item >= 0) trace_.line("failed item " + std::to_string(item));
    loop.next();  // throws again
  }
}

// Alternately reads batches from two loops.
void World::two_loops(const json& event) {
  const auto one = loaders_.at(event.at("loader"))->begin({});
  const auto other = loaders_.at(event.at("other"))->begin({});
  while (trace_batch(one, trace_) && trace_batch(other, trace_)) {
  }
}

void World::change_optimizer(const std::string& what, const json& event) {
  auto& of = optimizers_.at(event.at("optimizer"));
  auto& groups = of.optimizer->param_groups();
  const auto& net = *models_.at(of.model);
  if (what == "set_lr") {
    for (auto& group : groups) group.options().set_lr(event.at("lr"));
  }
  if (what == "list") groups.at(0).params() = parameters_of(net, event.at("part"));
  if (what == "add_group") {
    torch::optim::OptimizerParamGroup group(parameters_of(net, event.at("part")));
    of_sconce(*of.optimizer).add_param_group(group);
  }
  if (what == "move") move_away(of.optimizer);
  if (what == "archive") {
    auto& optimizer = of_sconce(*of.optimizer);
    optimizer.load_state_dict(optimizer.state_dict());
  }
}

// Replaces the head in the model and in every optimizer that contains it.
void World::new_head(size_t model) {
  auto& net = *models_.at(model);
  std::vector<std::vector<torch::Tensor>*> lists;
  for (auto& of : optimizers_) {
    if (of.model != model) continue;
    for (auto& group : of.optimizer->param_groups()) {
      const auto head = places_in(group.params(), parameters_of(net, "head"));
      if (head.front() < 0) continue;
      auto& list = group.params();
      list.erase(list.begin() + head.front(), list.begin() + head.front() + 2);
      lists.push_back(&list);
    }
  }
  net.new_head();
  for (auto* list : lists) {
    for (const auto& parameter : parameters_of(net, "head")) list->push_back(parameter);
  }
}

// Adds a copy of a model and a copy of its optimizer. The copied optimizer updates the new model.
void World::copy_model(const json& event) {
  const auto& original = models_.at(event.at("model"));
  auto generator = at::detail::getDefaultCPUGenerator();
  const auto state = generator.get_state();
  models_.emplace_back(std::dynamic_pointer_cast<NetImpl>(original->clone()));
  generator.set_state(state);  // a clone's constructor draws random numbers
  match_modes(original, models_.back());
  if (!event.contains("of")) return;
  const auto& of = optimizers_.at(event.at("of"));
  Groups groups;
  for (const auto& group : of.optimizer->param_groups()) {
    auto& list = groups.emplace_back();
    for (const auto place : places_in(original->parameters(), group.params())) {
      list.push_back(models_.back()->parameters().at(static_cast<size_t>(place)));
    }
  }
  auto copy = make_optimizer(of.spec, groups);
  of_sconce(*copy).load_state_dict(of_sconce(*of.optimizer).state_dict());
  optimizers_.push_back({of.spec, models_.size() - 1, std::move(copy)});
}

void World::trace_state() {
  for (size_t i = 0; i < models_.size(); ++i) {
    const auto& net = models_[i];
    std::string modes = "model " + std::to_string(i) + " ";
    for (const auto& module : net->modules()) modes += module->is_training() ? "t" : "e";
    for (const auto& parameter : net->parameters()) modes += parameter.requires_grad() ? "." : "f";
    trace_.tensors(modes, net->parameters());
    trace_.tensors("  buffers", net->buffers());
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const auto& of = optimizers_[i];
    trace_optimizer("optimizer " + std::to_string(i), *of.optimizer, *models_.at(of.model), trace_);
  }
  for (const auto& of : schedulers_) {
    std::string rates = "scheduler";
    for (const double lr : of.scheduler->get_last_lr()) rates += " " + number(lr);
    trace_.line(rates);
  }
  for (const auto& average : averages_) {
    const auto state = average.state_dict();
    std::vector<torch::Tensor> tensors = state.values();
    trace_.tensors("averages", tensors);
  }
  for (const auto& of : trainers_) {
    auto& scaler = of.trainer->scaler();
    const auto state = scaler.state_dict().toGenericDict();
    std::string text = "trainer";
    if (scaler.is_enabled()) {
      text += " " + number(state.at("scale").toDouble()) + " " +
              std::to_string(state.at("_growth_tracker").toInt());
    }
    trace_.line(text);
    trace_sums(of.metrics, trace_);
  }
  for (const auto& checkpoint : checkpoints_) {
    const auto position = [](const std::filesystem::path& file) {
      return file.empty() ? std::string("-") : file.filename().string().substr(11, 15);
    };
    trace_.line("checkpoint " + position(checkpoint->latest()) + " best " +
                position(checkpoint->best()));
  }
  trace_.tensors("random", {random_state()});
}

}  // namespace trainer_scripts
