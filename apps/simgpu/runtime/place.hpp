#pragma once

#include <string>

namespace simgpu {

/// The location in the program where a piece of work was requested. Valid until the process ends.
struct Place;

/// If the user has enabled places, determines the calling thread's location in the program for
/// `requested_at`. Called without holding the lock, because this function acquires Python's lock.
void note_place();

/// Returns the place most recently noted by the calling thread, or nullptr.
const Place* requested_at();

/// Returns " at train.py:12" in Python, outside torch's own files, or " at program 0x12 0x34" in
/// C++, with addresses for addr2line. The result is empty for nullptr and for places in LibTorch's
/// threads.
std::string at(const Place* place);

}  // namespace simgpu
