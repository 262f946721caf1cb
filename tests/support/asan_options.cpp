// Sets the AddressSanitizer options for each test program. ASAN_OPTIONS can add more.
extern "C" const char* __asan_default_options();

// The quarantine for freed memory is reduced from 256 MB to 8 MB, because some tests limit the
// memory available to the process.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8";
}
