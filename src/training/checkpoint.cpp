#include "sconce/training/checkpoint.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "check_path.hpp"
#include "distributed/gather_bytes.hpp"
#include "distributed/together.hpp"
#include "host_call.hpp"
#include "io/folder_names.hpp"
#include "io/input_file.hpp"
#include "repr/format.hpp"
#include "sconce/devices.hpp"
#include "sconce/io/atomic_file.hpp"
#include "sconce/io/torch_file.hpp"
#include "state/state_visitor.hpp"
#include "training/describe_best.hpp"

namespace sconce {

namespace {

namespace fs = std::filesystem;
using c10::IValue;

constexpr auto checkpoint_name = "sconce::Checkpoint: ";
constexpr auto file_prefix = "checkpoint-";
constexpr auto best_link = "best.pt";
// Numbers in file names have at most 18 digits.
constexpr int64_t largest_in_name = 999'999'999'999'999'999;

bool writes(const CheckpointOptions& options) {
  return options.process_group.rank() == 0;
}

// Runs `work` on this rank. If `work` throws on any rank, this function throws on every rank, so
// that no rank waits forever for another rank.
template <class F>
void together(const distributed::ProcessGroup& group, const F& work) {
  distributed::together(group, "sconce::Checkpoint", [&] {
    work();
    return distributed::RankValues();
  });
}

std::vector<at::Generator> generators() {
  std::vector<at::Generator> all = {at::detail::getDefaultCPUGenerator()};
  for (int i = 0; i < num_gpus(); ++i) {
    all.push_back(at::globalContext().defaultGenerator(gpu(i)));
  }
  return all;
}

torch::Tensor random_state() {
  std::vector<torch::Tensor> states;
  for (auto generator : generators()) {
    const std::scoped_lock lock(generator.mutex());
    states.push_back(generator.get_state());
  }
  return at::cat(states);
}

// LibTorch accepts a CPU generator state whose position exceeds 624, the length of the state array,
// and would then read out of bounds.
void check_random_state(const torch::Tensor& state, const std::string& where) {
  auto trial = at::detail::createCPUGenerator();
  const int64_t size = trial.get_state().numel();
  TORCH_CHECK(state.scalar_type() == at::kByte && state.dim() == 1 && state.numel() >= size, where,
              ": expected a generator state of at least ", size, " bytes");
  trial.set_state(state.narrow(0, 0, size).clone());
  const auto engine = at::check_generator<at::CPUGeneratorImpl>(trial)->engine().data();
  TORCH_CHECK(engine.left_ + static_cast<int64_t>(engine.next_) <= at::MERSENNE_STATE_N + 1, where,
              ": expected a random generator state, got a damaged state");
}

// If this machine has more GPUs than there are GPU states in the file, the generators of the
// additional GPUs keep their states.
void set_random_state(const torch::Tensor& state) {
  int64_t next = 0;
  for (auto generator : generators()) {
    const std::scoped_lock lock(generator.mutex());
    const int64_t size = generator.get_state().numel();
    if (next + size > state.numel()) return;
    generator.set_state(state.narrow(0, next, size).clone());
    next += size;
  }
}

// Returns every rank's generator states, in rank order. The number of GPUs may differ between the
// ranks' machines.
std::vector<torch::Tensor> random_states(const distributed::ProcessGroup& group) {
  std::vector<torch::Tensor> states;
  for (const auto& state : distributed::gather_bytes(group, random_state())) {
    states.push_back(state.clone());  // a view would add all of its base's memory to the file
  }
  return states;
}

// The keys of a checkpoint file other than the part names.
const std::set<std::string> other_keys = {"classes", "generators", "epoch",
                                          "batch",   "extra",      "best"};

void check_names(const NamedStates& parts) {
  std::set<std::string> names = other_keys;
  for (const auto& [name, part] : parts) {
    TORCH_CHECK(names.insert(name).second, checkpoint_name,
                "expected part names that are distinct and not reserved (such as 'epoch'), got '",
                name, "'");
  }
}

c10::impl::GenericDict states_of(const NamedStates& parts) {
  check_names(parts);
  auto states = string_dict();
  auto classes = string_dict();
  for (const auto& [name, part] : parts) {
    states.insert(name, part.state_dict());
    if (!part.type().empty()) classes.insert(name, part.type());
  }
  states.insert("classes", classes);
  return states;
}

// Maps each part to a key in the file. If the file does not contain a part's name, one of the
// part's former names is used, unless that name now belongs to another part.
NamedStates by_keys(const StateVisitor& saved, NamedStates parts) {
  std::set<std::string> taken;
  for (const auto& [name, part] : parts) taken.insert(name);
  for (auto& [name, part] : parts) {
    if (saved.dict().contains(name)) continue;
    const auto& former = part.former_names();
    const auto found = std::find_if(former.begin(), former.end(), [&](const auto& key) {
      return !taken.contains(key) && saved.dict().contains(key);
    });
    if (found != former.end()) taken.insert(name = *found);
  }
  return parts;
}

// Without this check, an optimizer or scheduler would accept the state of a different class with
// the same keys.
void check_classes(const StateVisitor& saved, const NamedStates& parts, const std::string& where) {
  if (!saved.dict().contains("classes")) return;  // written by another program
  StateVisitor classes(saved.value("classes"), where + ": 'classes'");
  for (const auto& [name, part] : parts) {
    if (part.type().empty() || !classes.dict().contains(name)) continue;
    std::string type;
    classes(name.c_str(), type);
    // Earlier versions saved class names with their namespaces.
    TORCH_CHECK(type == part.type() || type.ends_with("::" + part.type()), where,
                ": expected the class ", type, " for '", name, "' (as in the checkpoint), got ",
                part.type());
  }
}

void check_parts(const StateVisitor& saved, const NamedStates& parts, const std::string& where) {
  std::set<std::string> left;
  for (const auto& entry : saved.dict()) {
    const std::string& name = entry.key().toStringRef();
    if (!other_keys.contains(name) && !entry.value().isNone()) left.insert(name);
  }
  for (const auto& [name, part] : parts) {
    TORCH_CHECK(left.erase(name) > 0, where, ": expected a run without the part '", name,
                "' (as in the checkpoint)");
  }
  TORCH_CHECK(left.empty(), where, ": expected a run with the part '", *left.begin(),
              "' (as in the checkpoint)");
  check_classes(saved, parts, where);
}

// The errors that parts throw do not contain the file name or the part name.
void load_part(const Stateful& part, const c10::IValue& state, const std::string& where,
               const std::string& key) {
  try {
    part.load_state_dict(state);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, where, ": '", key, "': ", error.what_without_backtrace());
  }
}

void copy_whole(const fs::path& from, const fs::path& to) {
  const io::InputFile in(from, "sconce::Checkpoint");
  io::AtomicFile out(to, "sconce::Checkpoint");
  std::vector<char> bytes;
  for (uint64_t done = 0; done < in.size(); done += bytes.size()) {
    bytes.resize(std::min<uint64_t>(in.size() - done, 1 << 20));
    in.read(done, bytes.data(), bytes.size());
    out.write(bytes.data(), bytes.size());
  }
  out.finish();
}

// Returns a score, where higher is better.
double score_of(const MonitoredValue& of) {
  return of.mode == optim::MetricMode::max ? of.value : -of.value;
}

// Converts a score and a string returned by `describe_best` back to the monitored value. If no
// value is monitored, the string is empty.
MonitoredValue monitored_value(double score, const std::string& described) {
  for (const auto mode : {optim::MetricMode::min, optim::MetricMode::max}) {
    const std::string prefix = describe_best(mode, "");
    if (!described.starts_with(prefix)) continue;
    return {described.substr(prefix.size()), mode == optim::MetricMode::max ? score : -score, mode};
  }
  return {described, score, optim::MetricMode::max};
}

// The lock is released when the last pointer to it is destroyed or the process exits.
std::shared_ptr<const int> lock_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  TORCH_CHECK(fd >= 0, checkpoint_name, folder.string(),
              ": cannot open the folder: ", std::strerror(errno));
  std::shared_ptr<const int> lock(new int(fd), [](const int* open) {
    ::close(*open);
    delete open;
  });
  // Any other failure means that the file system does not support locks, or (on NFS) does not
  // support locks on folders.
  const bool is_taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  TORCH_CHECK(!is_taken, checkpoint_name, folder.string(),
              ": expected a folder that no other Checkpoint writes to, but another Checkpoint (in "
              "this process or another process) is writing to it");
  return lock;
}

}  // namespace

// The contents of a checkpoint file, excluding the parts of the run.
struct Checkpoint::RunState {
  std::vector<torch::Tensor> generators = {};
  RunProgress progress = {};
  std::optional<Best> best = {};
};

// In a file, "metric" is a score, where higher is better, and "monitor" is a string such as "lowest
// test_loss".
void visit_state(Checkpoint::Best& best, StateVisitor& state) {
  const auto& [name, value, mode] = best.of;
  double score = score_of(best.of);
  auto monitor = name.empty() ? std::nullopt : std::optional(describe_best(mode, name));
  state("metric", score);
  state.check(!std::isnan(score), "a number");
  state("file", best.file);
  state.check(Checkpoint::position_of(best.file).has_value(), "a checkpoint name");
  state.optional_value("monitor", monitor);
  best.of = monitored_value(score, monitor.value_or(""));
}

void visit_state(Checkpoint::RunState& run, StateVisitor& state) {
  state.any_length("generators", run.generators);
  state.count("epoch", run.progress.epoch);
  state.count("batch", run.progress.batch);
  state("extra", run.progress.extra);
  state("best", run.best);
}

Checkpoint::Checkpoint(fs::path folder, const CheckpointOptions& options)
    : folder_(std::move(folder)), options_(options) {
  check_path(folder_, "sconce::Checkpoint");
  TORCH_CHECK(options.keep_last >= 1, checkpoint_name, "expected keep_last to be at least 1, got ",
              options.keep_last);
  together(options.process_group, [&] {
    if (!writes(options)) return;
    std::error_code error;
    if (fs::create_directories(folder_, error)) io::sync_folder(folder_.parent_path());
    TORCH_CHECK(!error, checkpoint_name, folder_.string(),
                ": cannot create the folder: ", error.message());
    if (!options.resume) check_own("a folder without checkpoints, or the resume option");
  });
}

void Checkpoint::lock() {
  together(options_.process_group, [&] { take_folder(); });
}

void Checkpoint::take_folder() {
  if (!lock_ && writes(options_)) lock_ = lock_folder(folder_);
}

// Throws if the folder contains a checkpoint that is later than the last checkpoint that this
// object wrote or loaded. The later checkpoint belongs to a different run, and a save would remove
// it.
void Checkpoint::check_own(const char* expected) const {
  const auto all = files();
  TORCH_CHECK(all.empty() || position_of(all.back()) <= last_, checkpoint_name, folder_.string(),
              ": expected ", expected, "; found ", all.back());
}

void Checkpoint::save(const NamedStates& parts, const RunProgress& progress,
                      const std::optional<MonitoredValue>& monitored) {
  const auto fits = [](int64_t number) { return number >= 0 && number <= largest_in_name; };
  TORCH_CHECK(fits(progress.epoch) && fits(progress.batch), checkpoint_name,
              "expected an epoch and a batch from 0 to ", largest_in_name, ", got epoch ",
              progress.epoch, " and batch ", progress.batch);
  Position position = {last_ ? last_->front() : 1, progress.epoch, progress.batch};
  if (position <= last_) ++position.front();
  TORCH_CHECK(fits(position.front()), checkpoint_name, folder_.string(),
              ": expected a run that was restarted at most ", largest_in_name, " times");
  const std::string name = file_name(position);
  const auto random = random_states(options_.process_group);
  auto best = best_;
  if (monitored && is_better(*monitored)) {
    if (has_other_monitor(*monitored) && writes(options_)) {
      TORCH_WARN(checkpoint_name, folder_.string(), ": the best checkpoint so far has the ",
                 describe_best(best_->of.mode, best_->of.name), "; restarting with the ",
                 describe_best(monitored->mode, monitored->name));
    }
    best = {*monitored, name};
  }
  together(options_.process_group, [&] {
    if (!writes(options_)) return;
    take_folder();
    check_own("load before save");
    auto state = states_of(parts);
    for (const auto& entry : as_state(RunState{random, progress, best}).toGenericDict()) {
      state.insert(entry.key(), entry.value());
    }
    io::save_torch(folder_ / name, state);
    last_ = position;  // even after a failure below, the next save must accept this
  });
  last_ = position;
  best_ = best;
  end_save(best);
}

bool Checkpoint::is_better(const MonitoredValue& given) const {
  if (!options_.keep_best || std::isnan(given.value)) return false;
  return !best_ || has_other_monitor(given) || score_of(given) > score_of(best_->of);
}

bool Checkpoint::has_other_monitor(const MonitoredValue& given) const {
  if (!best_ || best_->of.name.empty() || given.name.empty()) return false;
  return best_->of.name != given.name || best_->of.mode != given.mode;
}

// `load` also calls this function, because the process that wrote the checkpoint may have been
// killed before the save finished.
void Checkpoint::end_save(const std::optional<Best>& best) const {
  together(options_.process_group, [&] {
    if (!lock_) return;
    link_best(best);
    prune(best);
  });
}

std::optional<RunProgress> Checkpoint::load(const NamedStates& parts) {
  detail::check_not_capturing("sconce::Checkpoint::load");
  check_names(parts);
  const auto& group = options_.process_group;
  if (!options_.resume) {
    together(group, [&] {
      if (writes(options_)) check_own("a folder without checkpoints, or the resume option");
    });
    return {};
  }
  const std::string name = agreed_latest();
  if (name.empty()) return {};
  RunState run;
  together(group, [&] { run = read(name, parts); });
  last_ = position_of(name);
  best_ = options_.keep_best ? run.best : std::nullopt;
  end_save(run.best);
  return run.progress;
}

Checkpoint::RunState Checkpoint::read(const std::string& name, const NamedStates& parts) {
  const std::string where = checkpoint_name + (folder_ / name).string();
  StateVisitor saved(io::load_torch(folder_ / name, {.require_checksums = true}), where);
  RunState run;
  visit_state(run, saved);
  const auto& group = options_.process_group;
  const auto ranks = static_cast<size_t>(group.world_size());
  TORCH_CHECK(run.generators.size() == ranks, where, ": expected a run of ", run.generators.size(),
              " processes (as in the saved 'generators'), got ", ranks);
  const auto& own = run.generators[static_cast<size_t>(group.rank())];
  check_random_state(own, where + ": 'generators'");
  const NamedStates found = by_keys(saved, parts);
  check_parts(saved, found, where);
  for (const auto& [key, part] : found) load_part(part, saved.value(key.c_str()), where, key);
  set_random_state(own);
  return run;
}

fs::path Checkpoint::latest() const {
  const auto all = files();
  return all.empty() ? fs::path() : folder_ / all.back();
}

fs::path Checkpoint::best() const {
  return best_ ? folder_ / best_->file : fs::path();
}

std::string Checkpoint::file_name(const Position& position) {
  const auto [round, epoch, batch] = position;
  const std::string name = format("%s%06lld-%08lld", file_prefix, static_cast<long long>(epoch),
                                  static_cast<long long>(batch));
  return name + (round > 1 ? "-" + std::to_string(round) : "") + ".pt";
}

// Parses the position from a checkpoint name, or returns std::nullopt if the name does not match
// the format.
std::optional<Checkpoint::Position> Checkpoint::position_of(const std::string& name) {
  static const std::regex pattern(
      file_prefix + std::string("([0-9]{6,18})-([0-9]{8,18})(-([2-9]|[1-9][0-9]{1,17}))?\\.pt"));
  std::smatch numbers;
  if (!std::regex_match(name, numbers, pattern)) return {};
  return Position{numbers[4].matched ? std::stoll(numbers[4]) : 1, std::stoll(numbers[1]),
                  std::stoll(numbers[2])};
}

// Returns the names of the checkpoints, from earliest to latest.
std::vector<std::string> Checkpoint::files() const {
  std::map<Position, std::string> names;
  std::error_code error;
  for (const auto& name : detail::folder_names(folder_, error)) {
    if (const auto position = position_of(name)) names[*position] = name;
  }
  TORCH_CHECK(!error || error == std::errc::no_such_file_or_directory, checkpoint_name,
              folder_.string(), ": cannot read the folder: ", error.message());
  std::vector<std::string> sorted;
  for (const auto& [position, name] : names) sorted.push_back(name);
  return sorted;
}

// Returns the name of the latest checkpoint that rank 0 finds. All ranks use this name, because the
// file may not be visible on other machines yet.
std::string Checkpoint::agreed_latest() const {
  const auto& group = options_.process_group;
  std::string name;
  together(group, [&] {
    if (writes(options_)) name = latest().filename().string();
  });
  auto text = at::zeros({256}, at::kByte);
  std::copy(name.begin(), name.end(), text.data_ptr<uint8_t>());
  text = text.to(distributed::device_for(group));
  group.broadcast(text, 0);
  return reinterpret_cast<const char*>(text.cpu().const_data_ptr<uint8_t>());
}

void Checkpoint::link_best(const std::optional<Best>& best) const {
  std::error_code error;
  if (!best) {  // an existing link would refer to a file that is not kept
    fs::remove(folder_ / best_link, error);
    return;
  }
  const fs::path part_link = folder_ / (std::string(best_link) + ".part");
  fs::remove(part_link, error);
  fs::create_symlink(best->file, part_link, error);
  if (error) copy_whole(folder_ / best->file, part_link);  // some file systems do not support links
  fs::rename(part_link, folder_ / best_link, error);
  TORCH_CHECK(!error, checkpoint_name, (folder_ / best_link).string(),
              ": cannot link it: ", error.message());
}

void Checkpoint::prune(const std::optional<Best>& best) const {
  auto names = files();
  names.resize(names.size() - std::min(names.size(), static_cast<size_t>(options_.keep_last)));
  for (const auto& name : names) {
    std::error_code ignored;  // the next save tries again
    if (!best || name != best->file) fs::remove(folder_ / name, ignored);
  }
  io::sweep_parts(folder_, file_prefix);
}

}  // namespace sconce
