#pragma once

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Stores a hash of the pinned memory that the stream's current work copies to a GPU, until the
/// host has waited for the copy. If the memory has changed by then, the change is reported.
void watch_source(const Stream& stream, const Access& source);

/// Examines the sources of all copies in the clock, which the host has waited for. Reports the
/// sources that have changed, and then removes all of these sources.
void check_sources(const Clock& done);

/// Like `check_sources`, but for sources in pinned memory that a GPU is about to overwrite. Later
/// changes to that memory are not made by the host.
void check_overwritten_sources(const Access& written);

}  // namespace simgpu
