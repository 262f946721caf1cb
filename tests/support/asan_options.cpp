// What AddressSanitizer is told in each test program. ASAN_OPTIONS adds to it.
extern "C" const char* __asan_default_options();

// Freed memory is kept from use for as long as 8 MB were freed after it, not 256: some tests bound
// the memory of the process.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8";
}
