#include "simgpu/kernels/ranges.hpp"

#include <ATen/record_function.h>

#include <memory>
#include <string>
#include <utility>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

struct OpenRange : at::ObserverContext {
  explicit OpenRange(std::string range) : name(std::move(range)) {}
  std::string name;
};

std::unique_ptr<at::ObserverContext> open_range(const at::RecordFunction& function) {
  begin_range(function.name());
  return std::make_unique<OpenRange>(function.name());
}

void close_range(const at::RecordFunction&, at::ObserverContext* context) {
  end_range(static_cast<OpenRange*>(context)->name.c_str());
}

}  // namespace

void follow_ranges() {
  if (!is_counting()) return;
  at::addGlobalCallback(
      at::RecordFunctionCallback(&open_range, &close_range).scopes({at::RecordScope::USER_SCOPE}));
}

}  // namespace simgpu
