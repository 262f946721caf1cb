#pragma once

namespace sconce::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

/// Returns the number of rounds that a test runs. With AddressSanitizer, this number is lower,
/// because each round takes several times as long, and the first round detects everything that
/// later rounds would.
constexpr int rounds(int plain, int sanitized) {
  return is_sanitized ? sanitized : plain;
}

}  // namespace sconce::test
