#pragma once

#include <ATen/record_function.h>

#include <memory>

namespace sconce::detail {

/// During its lifetime, calls one function before each operator in this thread and another function
/// after it, with the operator's arguments and results. Operators in threads that inherit this
/// thread's state are included. Sources that read the arguments and results require NDEBUG (see
/// src/capture/CMakeLists.txt).
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
