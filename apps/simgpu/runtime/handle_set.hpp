#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

namespace simgpu {

/// The objects of one kind that the program refers to by handle. The lock must be held during all
/// calls.
template <class T>
class HandleSet {
 public:
  /// Stores the object and returns its address, which is the handle.
  T* add(std::unique_ptr<T> object) {
    T* const handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }

  /// Returns nullptr if the program has no such handle.
  T* find(const void* handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second.get();
  }

  /// Removes the handle. Returns nullptr if the program has no such handle.
  std::unique_ptr<T> take(const void* handle) {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  std::unordered_map<const void*, std::unique_ptr<T>> objects_;
};

}  // namespace simgpu
