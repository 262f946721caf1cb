#pragma once

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Keeps a hash of pinned memory that the stream's present work copies to a GPU, until the host has
/// waited for the copy. Memory that has changed by then is named.
void watch_source(const Stream& stream, const Access& source);

/// Names the sources that have changed among those of copies that the clock knows, which the host
/// has waited for, and forgets these.
void check_sources(const Clock& done);

/// Does so for the sources in pinned memory that a GPU is about to write: what changes later is not
/// the host's doing.
void check_overwritten_sources(const Access& written);

}  // namespace simgpu
