#include "capture/step_graph.hpp"

#include <c10/util/Exception.h>

namespace sconce {

std::unique_ptr<StepGraph> StepGraph::begin(const std::vector<at::Generator>&) {
  TORCH_CHECK(false, "expected CUDA graphs, but sconce was built without CUDA");
}

}  // namespace sconce
