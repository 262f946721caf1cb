#pragma once

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <tuple>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"

namespace sconce::optim::lr_scheduler {

/// Throws unless `fits` is true. The remaining arguments form the message, which explains what the
/// scheduler `caller` expected.
template <class... Parts>
void expect(bool fits, const char* caller, const Parts&... parts) {
  TORCH_CHECK_VALUE(fits, "sconce::optim::lr_scheduler::", caller, ": expected ", parts...);
}

/// Returns one value for each of the optimizer's groups.
/// @throw c10::ValueError if a list has a different length.
template <class T>
std::vector<T> expand(const PerGroup<T>& values, const torch::optim::Optimizer& optimizer,
                      const char* caller, const char* what) {
  const size_t groups = optimizer.param_groups().size();
  if (!values.is_list()) return std::vector<T>(groups, values.values().front());
  expect(values.values().size() == groups, caller, what, " to be one value or a list of ", groups,
         ", one for each parameter group, got ", values.values().size());
  return values.values();
}

/// Returns a guard that restores the current values of the variables when it is destroyed. If the
/// guard is released, for example after a step that did not throw, the variables keep their new
/// values.
template <class... T>
[[nodiscard]] auto restore_unless_released(T&... variables) {
  return c10::make_scope_exit(
      [&variables..., before = std::tuple(variables...)] { std::tie(variables...) = before; });
}

}  // namespace sconce::optim::lr_scheduler
