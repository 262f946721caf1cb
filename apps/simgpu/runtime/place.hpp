#pragma once

#include <string>

namespace simgpu {

/// Where a program requested a piece of work. Valid until the process ends.
struct Place;

/// Determines where the calling thread is, for `requested_at`, if the user wants places. Called
/// without the lock, because it takes Python's lock.
void note_place();

/// Returns the place that the calling thread noted last, or nullptr.
const Place* requested_at();

/// Returns " at train.py:12" in Python, outside torch's own files, or " at program 0x12 0x34" in
/// C++, with addresses for addr2line. Empty for nullptr and for places in LibTorch's threads.
std::string at(const Place* place);

}  // namespace simgpu
