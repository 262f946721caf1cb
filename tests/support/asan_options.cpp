// Sets AddressSanitizer's options for each test program. ASAN_OPTIONS adds to them.
extern "C" const char* __asan_default_options();

// The quarantine of freed memory is 8 MB instead of 256 MB, because some tests limit the memory of
// the process.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8";
}
