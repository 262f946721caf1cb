#include "program/step_package.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "failure_of.hpp"

namespace sconce::program::detail {

namespace {

class Package final : public sconce::detail::CompiledCode {
 public:
  // A step runs in one thread, so the package needs no lock.
  explicit Package(const std::filesystem::path& path)
      : loader_(path.string(), "model", /*run_single_threaded=*/true) {}

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) override {
    return loader_.run(inputs);
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
  TORCH_CHECK(failure.empty(), path.string(), ": LibTorch does not load the package: ", failure);
  return package;
}

}  // namespace sconce::program::detail
