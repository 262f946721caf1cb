#pragma once

#include <string>

namespace simgpu {

/// Where a program requested a piece of work. Lives as long as the process.
struct Place;

/// Finds where the calling thread is, for `requested_at`, if the user wants places. Called without
/// the lock, since it takes Python's.
void note_place();

/// Returns the place that the calling thread has noted last, or nullptr.
const Place* requested_at();

/// " at train.py:12" in Python, outside of torch's own files; " at program 0x12 0x34" in C++, with
/// addresses for addr2line. Empty for nullptr and for places in LibTorch's threads.
std::string at(const Place* place);

}  // namespace simgpu
