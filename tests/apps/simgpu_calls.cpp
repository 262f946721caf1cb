// Calls each CUDA, CUPTI, and NCCL function that simulated GPUs export. The arguments are random,
// including null pointers and invalid handles. Each function runs in a separate process:
//     LD_PRELOAD=LIBRARY test-simgpu-calls LIBRARY CALLS SEED
// The program prints a line for each function that is terminated by a signal, does not return, or
// accepts an invalid handle.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

// Reports to the parent process which call the child is making.
std::array<char, 1000>& present_call() {
  static auto& text = *static_cast<std::array<char, 1000>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return text;
}

template <class T, class = void>
struct IsComplete : std::false_type {};
template <class T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// A handle is a pointer to an undefined type.
template <class T>
constexpr bool is_handle =
    std::is_pointer_v<T> && !std::is_void_v<std::remove_pointer_t<T>> &&
    !std::is_function_v<std::remove_pointer_t<T>> && !IsComplete<std::remove_pointer_t<T>>::value;

void do_nothing() {}

class Arguments {
 public:
  explicit Arguments(uint32_t seed) : random_(seed) {}

  // Clears the arguments before another call is prepared.
  void begin() {
    has_wrong_handle = false;
    text.clear();
    std::fill(memory_.begin(), memory_.end(), 0);
    if (is_drawn(2)) std::generate_n(memory_.begin(), 256, [&] { return random_(); });
  }

  template <class T>
  T make() {
    using Value = std::remove_cv_t<T>;
    Value value{};
    if constexpr (is_handle<Value>) {
      value = reinterpret_cast<Value>(handle());
    } else if constexpr (std::is_pointer_v<Value>) {
      using Target = std::remove_pointer_t<Value>;
      if (is_drawn(3)) {
        value = nullptr;
      } else if constexpr (std::is_function_v<Target>) {
        value = reinterpret_cast<Value>(do_nothing);
      } else {
        value = reinterpret_cast<Value>(memory_.data());
      }
    } else if constexpr (std::is_enum_v<Value> || std::is_integral_v<Value>) {
      constexpr std::array<int64_t, 6> numbers{0, 1, 2, -1, 12345, 0};
      value = static_cast<Value>(numbers[random_() % numbers.size()]);
    } else {
      std::memcpy(static_cast<void*>(&value), memory_.data(), sizeof value);
    }
    uint64_t word = 0;
    std::memcpy(&word, &value, std::min(sizeof word, sizeof value));
    text += (text.empty() ? "" : ", ") + std::to_string(word);
    return value;
  }

  bool has_wrong_handle = false;
  std::string text;

 private:
  bool is_drawn(unsigned one_of) { return random_() % one_of == 0; }

  // CUDA reserves the stream handles 1 and 2.
  uintptr_t handle() {
    if (is_drawn(4)) return 0;
    has_wrong_handle = true;
    if (is_drawn(3)) return 16;
    return is_drawn(2) ? UINTPTR_MAX : reinterpret_cast<uintptr_t>(memory_.data());
  }

  std::mt19937 random_;
  std::vector<char> memory_ = std::vector<char>(size_t{1} << 16);
};

// Calls a function, and returns whether the function accepted an invalid handle.
using Call = bool (*)(void* function, Arguments& arguments);

template <class Function>
struct CallOf;

template <class Result, class... Parameters>
struct CallOf<Result(Parameters...)> {
  static bool call(void* function, Arguments& arguments) {
    arguments.begin();
    std::tuple<Parameters...> values{arguments.make<Parameters>()...};
    std::snprintf(present_call().data(), present_call().size(), "(%s)", arguments.text.c_str());
    const Result result = std::apply(reinterpret_cast<Result (*)(Parameters...)>(function), values);
    if constexpr (std::is_enum_v<Result>) return arguments.has_wrong_handle && result == Result{};
    return false;
  }
};

// Simulated GPUs implement these functions. All other functions reject every call.
#define SIMGPU_CALL(function) {#function, CallOf<decltype(function)>::call},
#define SIMGPU_CALL_WITH(function, ...) {#function, CallOf<cudaError_t(__VA_ARGS__)>::call},
const std::map<std::string, Call>& typed_calls() {
  static const std::map<std::string, Call> calls = {
#include "simgpu_calls.inc"
  };
  return calls;
}

// Calls a function of unknown type and returns whether the call reported success.
bool call_without_type(const std::string& name, void* function) {
  std::snprintf(present_call().data(), present_call().size(), "(nulls)");
  using Function = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
  const int result = reinterpret_cast<Function>(function)(
      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  return result == 0 && !name.starts_with("__cuda");
}

// Runs in a child process. Exits with code 1 if the function accepted an argument that it should
// reject.
[[noreturn]] void call(const std::string& name, int times, uint32_t seed) {
  alarm(20);
  dup2(open("/dev/null", O_WRONLY), 2);
  void* function = dlsym(RTLD_DEFAULT, name.c_str());
  const auto found = typed_calls().find(name);
  if (found == typed_calls().end()) _exit(call_without_type(name, function) ? 1 : 0);
  Arguments arguments(seed);
  for (int i = 0; i < times; ++i) {
    if (found->second(function, arguments)) _exit(1);
  }
  _exit(0);
}

// Returns whether all calls to the function ended as expected.
bool check(const std::string& name, int times, uint32_t seed) {
  present_call().front() = 0;
  const pid_t child = fork();
  if (child == 0) call(name, times, seed);
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return true;
  const std::string end = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "returns success";
  std::printf("%s%s: %s\n", name.c_str(), present_call().data(), end.c_str());
  return false;
}

std::vector<std::string> exported_names(const std::string& library) {
  std::vector<std::string> names;
  FILE* symbols = popen(("nm -D --defined-only '" + library + "'").c_str(), "r");
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), symbols) != nullptr) {
    const std::string text = line.data();
    const auto name = text.substr(text.rfind(' ') + 1, text.size() - text.rfind(' ') - 2);
    for (const char* prefix : {"cu", "nccl", "nvml", "__cuda"}) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
  }
  return pclose(symbols) == 0 ? names : std::vector<std::string>();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto names = exported_names(argv[1]);
  int failures = names.empty() ? 1 : 0;
  for (const auto& name : names) {
    const auto seed = static_cast<uint32_t>(std::stoul(argv[3]));
    if (!check(name, std::stoi(argv[2]), seed)) ++failures;
  }
  std::printf("%zu functions, %d failures\n", names.size(), failures);
  return failures == 0 ? 0 : 1;
}
