#include "program/compilation.hpp"

#include <c10/util/Exception.h>

#include <condition_variable>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "failure_of.hpp"
#include "program/child_process.hpp"
#include "program/package_cache.hpp"
#include "program/private_folder.hpp"
#include "program/program_file.hpp"
#include "program/python_package.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce::program::detail {

namespace {

namespace fs = std::filesystem;
using sconce::detail::failure_of;
using namespace std::chrono_literals;

constexpr const char* program_name = "program.safetensors";
constexpr const char* compiled_name = "package.pt2";
constexpr const char* compile_error_prefix = "sconce::program: compiling a step: ";

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != line.npos) last = line;
  }
  return last;
}

// Polls the condition at the given interval until it holds. Returns false if the thread is asked to
// stop before the condition holds.
template <class F>
bool poll_until(const std::stop_token& stop, std::chrono::milliseconds interval, const F& holds) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    if (holds()) return true;
    stopped.wait_for(lock, stop, interval, [] { return false; });
  }
  return false;
}

// The sconce_cpp package is in `folder`, which is both the child's working directory and its
// PYTHONPATH. A relative path to Python is resolved against this process's working directory. A
// name without a folder is looked up in PATH.
std::unique_ptr<ChildProcess> start_python(const CompileTask& task, const fs::path& folder,
                                           const fs::path& inductor) {
  const bool is_path = task.python.has_parent_path();
  const auto python = (is_path ? fs::absolute(task.python) : task.python).string();
  try {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{python, "-m", "sconce_cpp.compile_step", program_name,
                                 compiled_name, "--threads", std::to_string(task.target.threads)},
        ChildSettings{.folder = folder,
                      .log = folder / "log",
                      .variables = {{"PYTHONPATH", folder.string()},
                                    {"TMPDIR", folder.string()},
                                    {"PYTHONDONTWRITEBYTECODE", "1"},
                                    {"TORCHINDUCTOR_CACHE_DIR", inductor.string()}}});
  } catch (const std::system_error& error) {
    const bool is_missing = error.code() == std::errc::no_such_file_or_directory;
    const auto reason =
        is_missing ? c10::str("expected Python at ", python, ", found none")
                   : c10::str("cannot start Python at ", python, ": ", error.code().message());
    C10_THROW_ERROR(Error, reason);
  }
}

}  // namespace

Compilation::Compilation(const PackageCache& cache, CompileTask task, const Graph& program)
    : cache_(std::make_unique<const PackageCache>(cache)), task_(std::move(task)) {
  // Writes the files in the calling thread, because the program's tensors may change afterward.
  const auto error = failure_of([&] {
    folder_ = std::make_unique<CompileFolder>(cache_->folder(), task_.key);
    write_program(folder_->path() / program_name, program, compile_error_prefix);
    thread_ = std::jthread(
        [this](const std::stop_token& stop) { end(failure_of([&] { compile(stop); })); });
  });
  if (!error.empty()) end(error);
}

Compilation::~Compilation() = default;

void Compilation::compile(const std::stop_token& stop) const {
  write_python_package();
  const auto& cache = cache_->folder();
  std::unique_ptr<CompileLock> lock;
  const auto is_locked = [&] {
    lock = std::make_unique<CompileLock>(cache / (task_.key + ".lock"));
    return lock->is_held();
  };
  if (!poll_until(stop, 50ms, is_locked)) return;
  if (cache_->find(task_.key, task_.target).package) return;
  CompileFolder::remove_abandoned(cache);
  const auto inductor = cache / "inductor";
  make_private_folder(inductor, compile_error_prefix);
  check_private(inductor, S_IFDIR);  // Python runs files in this folder
  const auto child = start_python(task_, folder_->path(), inductor);
  if (!poll_until(stop, 20ms, [&] { return child->has_ended(); })) return;
  check(*child);
  cache_->add(task_.key, task_.target, folder_->path() / compiled_name);
}

void Compilation::write_python_package() const {
  const auto folder = folder_->path() / "sconce_cpp";
  make_private_folder(folder, compile_error_prefix);
  for (const auto& file : python_package()) {
    io::write_file(folder / file.name, file.text, "sconce::program");
  }
}

// If the script failed, the last line of its output is the exception. If the script was killed, the
// last line can contain anything.
void Compilation::check(const ChildProcess& child) const {
  const auto& failure = child.failure();
  if (failure.empty()) {
    TORCH_CHECK(fs::exists(folder_->path() / compiled_name),
                "expected Python to write a package, but no package was written");
    return;
  }
  const auto line = last_line(io::read_file(folder_->path() / "log", "sconce::program"));
  TORCH_CHECK(!line.empty(), failure);
  TORCH_CHECK(!child.was_killed(), failure, " after the line: ", line);
  TORCH_CHECK(false, line);
}

void Compilation::end(std::string error) {
  folder_.reset();
  error_ = std::move(error);
  is_over_ = true;
  is_over_.notify_all();
}

}  // namespace sconce::program::detail
