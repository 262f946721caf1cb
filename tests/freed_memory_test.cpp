#include "sconce/freed_memory.hpp"

#include <sys/resource.h>

#include <array>
#include <memory>

#include "catch.hpp"

namespace {

// The number of pages that the system has given to this process so far.
long pages() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Touches four blocks of 30 MiB that are alive together, like the activations of a training step.
void make_and_free() {
  std::array<std::unique_ptr<char[]>, 4> blocks;
  for (auto& block : blocks) block = std::make_unique<char[]>(30 << 20);
}

}  // namespace

TEST_CASE("memory that was freed is used again without asking the system for pages") {
#ifdef __SANITIZE_THREAD__
  SKIP("malloc is ThreadSanitizer's");
#endif
  if (!sconce::keep_freed_memory()) SKIP("malloc is not glibc's");
  make_and_free();
  const long before = pages();
  for (int i = 0; i < 100; ++i) make_and_free();
  CHECK(pages() - before < 1000);  // the blocks have 3,072,000 pages
}
