#pragma once

#include <string>

#include "sconce/fwd.hpp"

namespace sconce {

/// Returns the module's class name without namespaces, template arguments, and `Impl`.
std::string class_name(const torch::nn::Module& module);

/// Returns the name that `repr` prints for the module: the name from its override, the name it was
/// given, or its class name without namespaces, template arguments, and `Impl`. Python:
/// `Module._get_name`.
std::string module_name(const torch::nn::Module& module);

}  // namespace sconce
