#include "program/step_package.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <set>

#include "failure_of.hpp"

namespace sconce::program::detail {

namespace {

// Returns whether any two tensors share memory. This check runs in every call, and the tensors
// rarely share memory.
bool share_memory(const std::vector<at::Tensor>& tensors) {
  std::vector<const void*> memory;
  memory.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    if (tensor.numel() > 0) memory.push_back(tensor.storage().data());
  }
  std::sort(memory.begin(), memory.end());
  return std::adjacent_find(memory.begin(), memory.end()) != memory.end();
}

// Inductor computes equal results only once and returns tensors that share memory. However, a later
// operation may write to one of these tensors. For example, an optimizer may write to the two equal
// bias gradients of an LSTM.
void separate(std::vector<at::Tensor>& results) {
  if (!share_memory(results)) return;
  std::set<const void*> taken;
  for (auto& result : results) {
    if (!taken.insert(result.storage().data()).second) result = result.clone();
  }
}

class Package final : public sconce::detail::CompiledCode {
 public:
  // A step runs in a single thread, so the package does not need a lock.
  explicit Package(const std::filesystem::path& path)
      : loader_(path.string(), "model", /*run_single_threaded=*/true) {}

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) override {
    auto results = loader_.run(inputs);
    separate(results);
    return results;
  }

 private:
  torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

bool can_load_packages() {
  return true;
}

std::unique_ptr<sconce::detail::CompiledCode> load_package(const std::filesystem::path& path) {
  std::unique_ptr<Package> package;
  const auto failure =
      sconce::detail::failure_of([&] { package = std::make_unique<Package>(path); });
  TORCH_CHECK(failure.empty(), path.string(), ": LibTorch cannot load the package: ", failure);
  return package;
}

}  // namespace sconce::program::detail
