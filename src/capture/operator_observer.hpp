#pragma once

#include <ATen/record_function.h>

#include <memory>

namespace sconce::detail {

/// Calls functions at the beginning and the end of each operator of this thread while it lives,
/// with its arguments and its results. Threads that take over this one's state are observed too.
/// Sources that read these need NDEBUG: see src/capture/CMakeLists.txt.
class OperatorObserver {
 public:
  using Begin = std::unique_ptr<at::ObserverContext> (*)(const at::RecordFunction&);
  using End = void (*)(const at::RecordFunction&, at::ObserverContext*);

  OperatorObserver(Begin begin, End end)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                               .needsInputs(true)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {}
  ~OperatorObserver() { at::removeCallback(handle_); }
  OperatorObserver(const OperatorObserver&) = delete;
  OperatorObserver& operator=(const OperatorObserver&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace sconce::detail
