#include "sconce/program/program.hpp"

#include <utility>

#include "program/prepared_program.hpp"
#include "program/program_file.hpp"
#include "resolve_device.hpp"

namespace sconce::program {

Program Program::load(const std::filesystem::path& path, LoadOptions options) {
  const std::string file = "sconce::program::Program::load: " + path.string();
  const std::string error_prefix = file + ": ";
  auto graph = detail::read_program(path, error_prefix);
  const auto device = resolve_device(options.device.value_or(graph.device), file.c_str());
  return Program(std::make_shared<detail::PreparedProgram>(std::move(graph), device, error_prefix));
}

Program::Program(std::shared_ptr<const detail::PreparedProgram> prepared)
    : prepared_(std::move(prepared)) {}

Tensors Program::run(const Tensors& inputs) const {
  return prepared_->run(inputs);
}

const std::vector<TensorSpec>& Program::inputs() const {
  return prepared_->inputs();
}

const std::vector<TensorSpec>& Program::outputs() const {
  return prepared_->outputs();
}

const std::map<std::string, std::string>& Program::metadata() const {
  return prepared_->graph().metadata;
}

torch::Device Program::device() const {
  return prepared_->device();
}

}  // namespace sconce::program
