#include "repr/module_name.hpp"

#include <c10/util/Type.h>
#include <torch/nn/modules/activation.h>

#include <typeinfo>

#include "sconce/repr.hpp"

namespace sconce {

std::string class_name(const torch::nn::Module& module) {
  std::string name = c10::demangle(typeid(module).name());
  if (name.ends_with('>')) {
    auto start = name.size();
    int depth = 0;
    do {
      --start;
      depth += name[start] == '>' ? 1 : name[start] == '<' ? -1 : 0;
    } while (depth > 0 && start > 0);
    name.resize(start);
  }
  if (const auto colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

// If a module does not have an explicit name, `name()` returns its class name. A module that was
// explicitly given its class name cannot be distinguished from a module without an explicit name.
std::string module_name(const torch::nn::Module& module) {
  const auto* own = dynamic_cast<const ReprOverride*>(&module);
  if (const auto name = own != nullptr ? own->repr_name() : std::nullopt) return *name;
  const std::string type_name = c10::demangle(typeid(module).name());
  // LibTorch itself sets the name of its attention module.
  const bool is_given = module.name() != type_name &&
                        dynamic_cast<const torch::nn::MultiheadAttentionImpl*>(&module) == nullptr;
  return is_given ? module.name() : class_name(module);
}

}  // namespace sconce
