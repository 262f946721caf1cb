#include "capture/out_variant.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "capture/known_operators.hpp"

namespace sconce::detail {

namespace {

using Overloads = std::map<std::string, std::vector<c10::OperatorName>>;

// Returns all operator overloads, keyed by name.
Overloads all_overloads() {
  Overloads overloads;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    overloads[name.name].push_back(name);
  }
  return overloads;
}

bool is_same(const c10::Argument& a, const c10::Argument& b) {
  return a.name() == b.name() && *a.type() == *b.type();
}

bool writes_results_of(const c10::FunctionSchema& out, const c10::FunctionSchema& functional) {
  const auto& given = functional.arguments();
  const auto& all = out.arguments();
  if (all.size() != given.size() + functional.returns().size()) return false;
  const auto outs = all.begin() + static_cast<std::ptrdiff_t>(given.size());
  return std::equal(given.begin(), given.end(), all.begin(), is_same) &&
         std::all_of(outs, all.end(), [](const c10::Argument& argument) {
           return argument.is_out() && argument.type()->kind() == c10::TypeKind::TensorType;
         });
}

std::optional<c10::OperatorHandle> find(const c10::FunctionSchema& functional) {
  if (has_trait(functional.name(), Trait::wrong_out_variant)) return {};
  static const Overloads overloads = all_overloads();
  const auto found = overloads.find(functional.name());
  if (found == overloads.end()) return {};
  for (const auto& name : found->second) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    // An out variant that copies its results has a single kernel for all backends instead of a CPU
    // kernel.
    if (op && writes_results_of(op->schema(), functional) &&
        op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      return op;
    }
  }
  return {};
}

}  // namespace

std::optional<c10::OperatorHandle> out_variant(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static std::map<c10::OperatorName, std::optional<c10::OperatorHandle>,
                  decltype([](const c10::OperatorName& a, const c10::OperatorName& b) {
                    return std::tie(a.name, a.overload_name) < std::tie(b.name, b.overload_name);
                  })>
      found;
  const std::lock_guard lock(mutex);
  const auto known = found.find(op.operator_name());
  if (known != found.end()) return known->second;
  return found[op.operator_name()] = find(op.schema());
}

}  // namespace sconce::detail
