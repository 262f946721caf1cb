#include "report/best_effort.hpp"

#include <c10/util/Exception.h>

#include <exception>

namespace sconce {

bool BestEffort::run(const std::function<void()>& write) {
  std::string error;
  try {
    write();
    return true;
  } catch (const c10::Error& failure) {
    error = failure.what_without_backtrace();
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  if (!warned_) TORCH_WARN(caller_, ": training continues without this report: ", error);
  warned_ = true;
  return false;
}

}  // namespace sconce
