#include "sconce/data/detail/stream_places.hpp"

#include <utility>

#include "state/state_visitor.hpp"

namespace sconce::data::detail {

namespace {

struct SavedPlace {
  LoopPosition position;
  StreamPlace place;
};

void visit_state(SavedPlace& saved, StateVisitor& state) {
  state.count("epoch", saved.position.epoch);
  state.count("batch", saved.position.batch);
  state.count("pass", saved.place.pass);
  state.count("chunk", saved.place.chunk);
  state.count("taken", saved.place.taken);
  state.optional_value("stream", saved.place.stream);
}

}  // namespace

void StreamPlaces::note(LoopPosition position, StreamPlace place) {
  const std::lock_guard lock(mutex_);
  position_ = position;
  place_ = std::move(place);
}

std::optional<StreamPlace> StreamPlaces::find(LoopPosition position) const {
  const std::lock_guard lock(mutex_);
  return position == position_ ? std::optional(place_) : std::nullopt;
}

c10::IValue StreamPlaces::state_dict() const {
  const std::lock_guard lock(mutex_);
  return as_state(SavedPlace{position_, place_});
}

void StreamPlaces::load_state_dict(const c10::IValue& state) {
  auto saved = from_state<SavedPlace>(state, "sconce::data::StreamLoader::load_state_dict");
  note(saved.position, std::move(saved.place));
}

}  // namespace sconce::data::detail
