#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "program/graph.hpp"
#include "program/refusals.hpp"
#include "sconce/repr.hpp"

// The names used in a program's JSON, which match Python's names. docs/recorded_programs.md
// describes the format.
namespace sconce::program::detail {

/// The version of the format. The version increases with every change that affects readers.
inline constexpr int64_t version = 1;

inline constexpr std::array<std::pair<const char*, c10::Layout>, 1> layouts = {
    {{"strided", c10::Layout::Strided}}};
inline constexpr std::array<std::pair<const char*, c10::MemoryFormat>, 4> memory_formats = {
    {{"contiguous_format", c10::MemoryFormat::Contiguous},
     {"preserve_format", c10::MemoryFormat::Preserve},
     {"channels_last", c10::MemoryFormat::ChannelsLast},
     {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}}};
inline constexpr std::array<std::pair<const char*, c10::DeviceType>, 2> devices = {
    {{"cpu", c10::kCPU}, {"cuda", c10::kCUDA}}};
inline constexpr std::array<std::pair<const char*, WeightKind>, 3> kinds = {
    {{"parameter", WeightKind::parameter},
     {"buffer", WeightKind::buffer},
     {"constant", WeightKind::constant}}};

/// Returns the name that the file uses for a value.
/// @throw c10::Error if programs do not support the value.
template <class Names, class T>
std::string name_in(const Names& names, T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  TORCH_CHECK(false, record_error_prefix, "expected an enum value that programs support, got ",
              static_cast<int64_t>(value));
}

/// Returns the name without "torch.".
inline std::string dtype_name(c10::ScalarType type) {
  return repr(type).substr(std::string("torch.").size());
}

}  // namespace sconce::program::detail
