#include "sconce/step_compiler.hpp"

#include "state/state_visitor.hpp"

namespace sconce {

std::optional<StepMode> StepCompiler::kept(const std::string& key) const {
  const auto found = kept_.find(key);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

void StepCompiler::keep(const std::string& key, StepMode mode) {
  kept_[key] = mode;
}

c10::IValue StepCompiler::state_dict() const {
  auto state = string_dict();
  for (const auto& [key, mode] : kept_) {
    state.insert(key, mode == StepMode::compiled ? "compiled" : "replay");
  }
  return state;
}

void StepCompiler::load_state_dict(const c10::IValue& state) {
  constexpr auto caller = "sconce::StepCompiler::load_state_dict";
  std::map<std::string, StepMode> kept;
  StateVisitor saved(state, caller);
  for (const auto& entry : saved.dict()) {
    std::string name;
    saved(entry.key().toStringRef().c_str(), name);
    saved.check(name == "compiled" || name == "replay", "\"compiled\" or \"replay\"");
    kept.emplace(entry.key().toStringRef(),
                 name == "compiled" ? StepMode::compiled : StepMode::replayed);
  }
  kept_ = std::move(kept);
}

}  // namespace sconce
