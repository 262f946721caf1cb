#include "sconce/program/inductor.hpp"

#include <c10/util/Exception.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/compiled_step.hpp"
#include "program/graph_writer.hpp"
#include "program/package_cache.hpp"
#include "program/package_target.hpp"
#include "program/python_package.hpp"
#include "program/step_package.hpp"
#include "program/step_parts.hpp"

namespace sconce::program {

namespace {

using detail::PackageCache;
using detail::PackageTarget;
using detail::StepPart;

constexpr const char* inductor_error_prefix = "sconce::program::inductor: ";

// Calling compiled code takes as long as running a few operators.
constexpr size_t min_operators = 4;

std::string text_of(const PackageTarget& target) {
  return c10::str(target.torch, target.cpu, target.device, target.threads, target.compiler);
}

// Stores one part of a step together with the package compiled from that part.
struct PartPackage {
  StepPart part;
  std::string key = {};
  std::optional<std::filesystem::path> package = {};
  std::unique_ptr<detail::Compilation> compilation = {};  // null if the cache contained the package
};

class Compilation final : public sconce::detail::StepCompilation {
 public:
  Compilation(const sconce::detail::RecordedStep& step, std::shared_ptr<const PackageCache> cache,
              const std::filesystem::path& python)
      : cache_(std::move(cache)) {
    for (auto& part : detail::parts_of(step)) {
      if (part.call.end - part.call.begin >= min_operators) add(std::move(part), python);
    }
    TORCH_CHECK(!parts_.empty(), inductor_error_prefix, "expected at least ", min_operators,
                " operators between two host calls, got fewer");
  }

  bool is_over() override {
    return std::all_of(parts_.begin(), parts_.end(), [](auto& part) {
      return part.compilation == nullptr || part.compilation->is_over();
    });
  }

  void wait() override {
    for (auto& part : parts_) {
      if (part.compilation != nullptr) part.compilation->wait();
    }
  }

  std::vector<sconce::detail::CompiledCall> take() override {
    std::vector<sconce::detail::CompiledCall> calls;
    for (auto& part : parts_) {
      if (part.compilation != nullptr) find_compiled(part);
      part.part.call.code = detail::load_package(*part.package);
      calls.push_back(std::move(part.part.call));
    }
    return calls;
  }

  const std::string& key() const override { return key_; }

 private:
  void add(StepPart part, const std::filesystem::path& python) {
    // Includes the number of threads, which may differ between runs on the same machine. The cache
    // compares all other properties of the target.
    auto key = c10::sha1(c10::str(detail::json_of(part.program, {}, {}), target_.threads)).str();
    key_ = c10::sha1(key_ + key).str();
    const auto found = cache_->find(key, target_);
    if (!found.ignored.empty()) {
      TORCH_WARN(inductor_error_prefix, "recompiling a package in the cache: ", found.ignored);
    }
    auto& added = parts_.emplace_back(PartPackage{std::move(part), std::move(key)});
    added.package = found.package;
    if (found.package) return;
    added.compilation = cache_->compile(added.key, target_, added.part.program, python);
  }

  void find_compiled(PartPackage& part) const {
    TORCH_CHECK(part.compilation->error().empty(), inductor_error_prefix,
                part.compilation->error());
    const auto found = cache_->find(part.key, target_);
    TORCH_CHECK(found.package, inductor_error_prefix, "expected a package in the cache, got ",
                found.ignored.empty() ? "none" : found.ignored);
    part.package = found.package;
  }

  std::shared_ptr<const PackageCache> cache_;
  PackageTarget target_ = detail::package_target(c10::kCPU);
  std::vector<PartPackage> parts_ = {};
  std::string key_ = text_of(target_);  // becomes the key of the step
};

class Inductor final : public StepCompiler {
 public:
  explicit Inductor(InductorOptions options)
      : StepCompiler({.keep = options.keep, .wait = options.wait}),
        cache_(std::make_shared<const PackageCache>(options.cache_dir)),
        python_(options.python.empty() ? detail::default_python() : std::move(options.python)) {}

  std::unique_ptr<sconce::detail::StepCompilation> compile(
      const sconce::detail::RecordedStep& step) override {
    return std::make_unique<Compilation>(step, cache_, python_);
  }

  std::optional<StepMode> kept(const std::string& key) const override {
    if (const auto mode = StepCompiler::kept(key)) return mode;
    const auto stored = cache_->choice(key);
    if (stored.empty()) return {};
    return stored == "compiled" ? StepMode::compiled : StepMode::replayed;
  }

  // Does not store the choice if the user requested the compiled variant, because nothing was
  // measured and later runs may request the faster variant.
  void keep(const std::string& key, StepMode mode) override {
    if (options().keep == KeptStep::compiled) return;
    StepCompiler::keep(key, mode);
    const auto error =
        cache_->store_choice(key, mode == StepMode::compiled ? "compiled" : "replay");
    if (!error.empty())
      TORCH_WARN(inductor_error_prefix,
                 "cannot store whether the step was compiled or replayed: ", error);
  }

 private:
  std::shared_ptr<const PackageCache> cache_;
  std::filesystem::path python_;
};

}  // namespace

std::shared_ptr<StepCompiler> inductor(InductorOptions options) {
  TORCH_CHECK(detail::can_load_packages(), inductor_error_prefix,
              "expected a LibTorch build with the AOTInductor runtime, got a build without it");
  return std::make_shared<Inductor>(std::move(options));
}

}  // namespace sconce::program
