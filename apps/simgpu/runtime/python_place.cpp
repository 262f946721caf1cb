#include "simgpu/runtime/python_place.hpp"

#include <dlfcn.h>

namespace simgpu {

namespace {

// Python's functions, which the process has or has not.
struct Python {
  template <class Function>
  static void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }

  Python() {
    find(this_thread, "PyGILState_GetThisThreadState");
    find(ensure, "PyGILState_Ensure");
    find(release, "PyGILState_Release");
    find(frame_of, "PyThreadState_GetFrame");
    find(back, "PyFrame_GetBack");
    find(code_of, "PyFrame_GetCode");
    find(line_of, "PyFrame_GetLineNumber");
    find(attribute, "PyObject_GetAttrString");
    find(text_of, "PyUnicode_AsUTF8");
    find(give_back, "Py_DecRef");
  }

  bool is_there() const { return frame_of != nullptr && back != nullptr; }

  void* (*this_thread)() = nullptr;
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  void* (*frame_of)(void*) = nullptr;
  void* (*back)(void*) = nullptr;
  void* (*code_of)(void*) = nullptr;
  int (*line_of)(void*) = nullptr;
  void* (*attribute)(void*, const char*) = nullptr;
  const char* (*text_of)(void*) = nullptr;
  void (*give_back)(void*) = nullptr;
};

const Python& python() {
  static const auto& functions = *new Python;
  return functions;
}

std::string file_of(void* frame) {
  void* code = python().code_of(frame);
  void* name = python().attribute(code, "co_filename");
  const char* text = name == nullptr ? nullptr : python().text_of(name);
  const std::string file = text == nullptr ? "" : text;
  if (name != nullptr) python().give_back(name);
  python().give_back(code);
  return file;
}

bool is_of_torch(const std::string& file) {
  return file.starts_with("<frozen") || file.find("/site-packages/torch/") != std::string::npos ||
         file.find("/dist-packages/torch/") != std::string::npos;
}

std::string place_of_frames(void* frame) {
  std::string place;
  while (frame != nullptr) {
    const auto file = file_of(frame);
    place = file + ":" + std::to_string(python().line_of(frame));
    void* outer = is_of_torch(file) ? python().back(frame) : nullptr;
    python().give_back(frame);
    frame = outer;
  }
  return place;
}

}  // namespace

std::string python_place() {
  if (!python().is_there()) return "";
  void* thread = python().this_thread();
  if (thread == nullptr) return "";
  const int state = python().ensure();
  const auto place = place_of_frames(python().frame_of(thread));
  python().release(state);
  return place;
}

}  // namespace simgpu
