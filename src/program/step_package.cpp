#include "program/step_package.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

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
  try {
    return std::make_unique<Package>(path);
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const c10::Error*>(&error);
    const auto reason = known != nullptr ? known->what_without_backtrace() : error.what();
    C10_THROW_ERROR(Error,
                    c10::str(path.string(), ": LibTorch does not load the package: ", reason));
  }
}

}  // namespace sconce::program::detail
