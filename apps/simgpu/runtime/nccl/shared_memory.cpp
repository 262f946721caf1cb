#include "simgpu/runtime/nccl/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>

#include "simgpu/runtime/nccl/failure.hpp"

namespace simgpu::nccl {

namespace {

// The header of a shared memory file. The key distinguishes this memory from a different file that
// has the same file descriptor number.
struct Header {
  uint64_t key;
  std::atomic<int> ranks;
};

// The contents of an ncclUniqueId, which identifies an unnamed file that is open in the process
// that created it.
struct Location {
  pid_t process;
  int file;
  uint64_t key;
};

static_assert(sizeof(Location) <= sizeof(ncclUniqueId));

constexpr size_t page_size = 4096;

constexpr size_t round_to_page(size_t size) {
  return (size + page_size - 1) / page_size * page_size;
}

constexpr size_t members_offset = page_size;
constexpr size_t slots_offset = members_offset + round_to_page(max_ranks * sizeof(Member));

size_t channels_offset(int ranks) {
  return slots_offset + static_cast<size_t>(ranks) * sizeof(Slot);
}

size_t size_for(int ranks) {
  const auto count = static_cast<size_t>(ranks);
  return round_to_page(channels_offset(ranks) + count * count * sizeof(Channel));
}

Failure system_failure(const std::string& what) {
  return {ncclSystemError, what + ": " + std::strerror(errno)};
}

Location location_in(const ncclUniqueId& id) {
  Location location;
  std::memcpy(&location, id.internal, sizeof location);
  return location;
}

// The files that the process keeps open for ranks that have not joined yet, indexed by key.
struct OpenFiles {
  std::mutex mutex;
  std::map<uint64_t, int> files;
};

OpenFiles& open_files() {
  static auto& files = *new OpenFiles;
  return files;
}

char* map_file(int file, size_t size) {
  if (ftruncate(file, static_cast<off_t>(size)) != 0) {
    throw system_failure("cannot access a communicator's shared memory");
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) throw system_failure("cannot access a communicator's shared memory");
  return static_cast<char*>(data);
}

int open_file(const Location& location) {
  const auto path =
      "/proc/" + std::to_string(location.process) + "/fd/" + std::to_string(location.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    throw system_failure("process " + std::to_string(location.process) +
                         ", which created the ncclUniqueId, does not share the ID");
  }
  uint64_t key = 0;
  if (pread(file, &key, sizeof key, 0) != sizeof key || key != location.key) {
    close(file);
    throw Failure(ncclInvalidArgument, "the ncclUniqueId is no longer valid");
  }
  return file;
}

}  // namespace

ncclUniqueId SharedMemory::create() {
  std::random_device random;
  const uint64_t key = (uint64_t{random()} << 32) | random();
  const int file = memfd_create("simulated NCCL", MFD_CLOEXEC);
  if (file < 0) throw system_failure("memfd_create");
  if (pwrite(file, &key, sizeof key, 0) != sizeof key) {
    close(file);
    throw system_failure("cannot access a communicator's shared memory");
  }
  auto& open = open_files();
  const std::lock_guard lock(open.mutex);
  open.files[key] = file;
  const Location location{getpid(), file, key};
  ncclUniqueId id{};
  std::memcpy(id.internal, &location, sizeof location);
  return id;
}

void SharedMemory::release(const ncclUniqueId& id) {
  const auto location = location_in(id);
  auto& open = open_files();
  const std::lock_guard lock(open.mutex);
  const auto found = open.files.find(location.key);
  if (found == open.files.end() || location.process != getpid()) return;
  close(found->second);
  open.files.erase(found);
}

SharedMemory::SharedMemory(const ncclUniqueId& id, int ranks)
    : ranks_(ranks), size_(size_for(ranks)) {
  const int file = open_file(location_in(id));
  try {
    data_ = map_file(file, size_);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  int expected = 0;
  auto& header = *reinterpret_cast<Header*>(data_);
  if (!header.ranks.compare_exchange_strong(expected, ranks) && expected != ranks) {
    munmap(data_, size_);
    throw Failure(ncclInvalidArgument, "expected the same number of ranks in each process, got " +
                                           std::to_string(ranks) + " and " +
                                           std::to_string(expected));
  }
}

SharedMemory::~SharedMemory() {
  munmap(data_, size_);
}

Member& SharedMemory::member(int rank) const {
  return reinterpret_cast<Member*>(data_ + members_offset)[rank];
}

Slot& SharedMemory::slot(int rank) const {
  return reinterpret_cast<Slot*>(data_ + slots_offset)[rank];
}

Channel& SharedMemory::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(data_ + channels_offset(ranks_))[from * ranks_ + to];
}

}  // namespace simgpu::nccl
