#include "optim/group_condition.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "host_call.hpp"
#include "weak_tensor.hpp"

namespace sconce::optim {

namespace {

// A snapshot of a group's parameters, which prevents their addresses from being reused.
class ParametersOfGroup {
 public:
  explicit ParametersOfGroup(const torch::optim::OptimizerParamGroup& group) {
    for (const auto& parameter : group.params()) {
      parameters_.emplace_back(detail::WeakTensor(parameter.getIntrusivePtr()),
                               parameter.requires_grad());
    }
  }

  bool is_unchanged(const torch::optim::OptimizerParamGroup& now) const {
    const auto& others = now.params();
    return std::equal(parameters_.begin(), parameters_.end(), others.begin(), others.end(),
                      [](const auto& then, const torch::Tensor& parameter) {
                        return then.first._unsafe_get_target() == parameter.unsafeGetTensorImpl() &&
                               then.second == parameter.requires_grad();
                      });
  }

 private:
  std::vector<std::pair<detail::WeakTensor, bool>> parameters_ = {};
};

}  // namespace

void depend_on_groups(const torch::optim::Optimizer& optimizer) {
  if (!detail::is_capturing()) return;
  std::vector<ParametersOfGroup> groups;
  for (const auto& group : optimizer.param_groups()) groups.emplace_back(group);
  detail::depend_on(&optimizer, [&optimizer, groups = std::move(groups)] {
    const auto& now = optimizer.param_groups();
    return std::equal(groups.begin(), groups.end(), now.begin(), now.end(),
                      [](const auto& then, const auto& group) { return then.is_unchanged(group); });
  });
}

}  // namespace sconce::optim
