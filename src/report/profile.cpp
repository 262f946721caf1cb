#include "sconce/report/profile.hpp"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <kineto/libkineto.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "check_path.hpp"
#include "report/best_effort.hpp"
#include "sconce/devices.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce {

namespace profiler {

// The minimum severity of the messages that Kineto logs. LibTorch exports this variable, but does
// not declare it in a header.
extern std::atomic_int kineto_log_level asm("_ZN9libkineto6Logger14severityLevel_E")
    __attribute__((weak));

namespace {

namespace impl = torch::profiler::impl;

// A process has only one profiler, and starting it again would discard its records.
std::atomic<bool> is_profile_active = false;

// Returns whether a profiler started elsewhere is active: a LibTorch profiler in this thread, or a
// Kineto profiler in any thread.
bool is_other_profile_active() {
  if (impl::profilerEnabled()) return true;
  auto& kineto = libkineto::api();
  return kineto.isProfilerInitialized() && kineto.activityProfiler().isActive();
}

// Silences Kineto for the lifetime of the object. Otherwise, Kineto logs to stderr when a profile
// starts and stops, and when there is no GPU.
class QuietKineto {
 public:
  QuietKineto() {
    if (&kineto_log_level != nullptr) before_ = kineto_log_level.exchange(libkineto::ENUM_COUNT);
  }
  ~QuietKineto() {
    if (&kineto_log_level != nullptr) kineto_log_level = before_;
  }
  QuietKineto(const QuietKineto&) = delete;
  QuietKineto& operator=(const QuietKineto&) = delete;

 private:
  int before_ = 0;
};

constexpr auto caller = "sconce::profiler::Profile::export_chrome_trace";

// Returns the contents of a trace file. LibTorch can only save the trace to a file, overwrites
// existing files, and does not report an error if the disk is full.
std::string saved(torch::autograd::profiler::ProfilerResult& result,
                  const std::filesystem::path& file) {
  std::string folder = (file.parent_path() / ".sconce-trace-XXXXXX").string();
  TORCH_CHECK(::mkdtemp(folder.data()) != nullptr, caller, ": ", file.string(),
              ": cannot create a temporary folder next to the file: ", std::strerror(errno));
  const auto cleanup = c10::make_scope_exit([&] {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  });
  const std::string part = folder + "/trace.json";
  result.save(part);
  std::ifstream in(part, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto end = text.find_last_not_of(" \n");
  TORCH_CHECK(end != text.npos && text[end] == '}', caller, ": ", file.string(),
              ": expected enough disk space for two copies of the trace, found too little space");
  return text;
}

}  // namespace

Profile::Profile() {
  const bool is_first = !is_profile_active.exchange(true);
  auto deactivate = c10::make_scope_exit([&] {
    if (is_first) is_profile_active = false;
  });
  TORCH_CHECK(is_first && !is_other_profile_active(),
              "sconce::profiler::Profile: expected no other active profile (a process has only one "
              "profiler), got an active profile");
  const impl::ProfilerConfig config(impl::ProfilerState::KINETO);
  std::set<impl::ActivityType> activities = {impl::ActivityType::CPU};
  if (num_gpus() > 0) activities.insert(impl::ActivityType::CUDA);
  torch::autograd::profiler::prepareProfiler(config, activities);
  const QuietKineto quiet;  // after LibTorch has set the level
  torch::autograd::profiler::enableProfiler(config, activities);
  deactivate.release();
}

Profile::~Profile() {
  if (!is_active_) return;
  try {
    const QuietKineto quiet;
    torch::autograd::profiler::disableProfiler();
  } catch (...) {  // the records are discarded in any case
  }
  is_profile_active = false;
}

void Profile::export_chrome_trace(const std::filesystem::path& file) {
  check_path(file, caller);
  TORCH_CHECK(is_active_, caller, ": expected an active profile, got a profile that has ended");
  if (num_gpus() > 0) synchronize(c10::Device(c10::kCUDA));
  is_active_ = false;
  const auto deactivate = c10::make_scope_exit([] { is_profile_active = false; });
  const QuietKineto quiet;
  io::write_file(file, saved(*torch::autograd::profiler::disableProfiler(), file), caller);
}

}  // namespace profiler

StepTrace::StepTrace(std::filesystem::path file, int64_t steps)
    : file_(std::move(file)), steps_(steps) {
  check_path(file_, "sconce::StepTrace");
  TORCH_CHECK(steps >= 1, "sconce::StepTrace: expected at least 1 step, got ", steps);
}

bool StepTrace::is_traced(const Fit& fit) const {
  return !is_over_ && fit.process_group.rank() == 0 && (fit_ == nullptr || fit_ == &fit);
}

void StepTrace::on_after_optimizer_step(Fit& fit) {
  if (!is_traced(fit)) return;
  fit_ = &fit;
  if (!profile_) {
    is_over_ = !BestEffort("sconce::StepTrace").run([this] { profile_.emplace(); });
  } else if (++recorded_ == steps_) {
    write();
  }
}

void StepTrace::on_fit_end(Fit& fit) {
  if (!is_traced(fit)) return;
  fit_ = nullptr;
  if (recorded_ > 0) return write();
  is_over_ = true;
  profile_.reset();
  TORCH_WARN(
      "sconce::StepTrace: expected a fit of at least 2 steps (the first step is not traced), got "
      "fewer: no trace was written");
}

void StepTrace::write() {
  is_over_ = true;
  BestEffort("sconce::StepTrace").run([&] { profile_->export_chrome_trace(file_); });
  profile_.reset();
}

}  // namespace sconce
