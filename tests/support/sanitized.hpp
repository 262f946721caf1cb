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

/// Returns the number of rounds of a test. AddressSanitizer makes each several times as slow and
/// finds in the first what it finds in all, so there are fewer with it.
constexpr int rounds(int plain, int sanitized) {
  return is_sanitized ? sanitized : plain;
}

}  // namespace sconce::test
