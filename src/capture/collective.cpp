#include "capture/collective.hpp"

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace sconce::detail {

void run_collective(const c10::OperatorHandle& op, torch::jit::Stack arguments) {
  op.callBoxed(&arguments);
  for (const auto& result : arguments) {
    if (result.isCustomClass()) result.toCustomClass<c10d::Work>()->wait();
  }
}

}  // namespace sconce::detail
