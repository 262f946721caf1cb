/* Trains and predicts in C with a library of C++, which is loaded while the program runs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_interface.h"

enum { rows = 1000, inputs = 2, classes = 2 };

static uint64_t (*create)(int64_t, int64_t, int64_t, uint64_t);
static int (*train)(uint64_t, const float*, int64_t, const int64_t*, int64_t, int64_t);
static int (*predict)(uint64_t, const float*, int64_t, float*, int64_t);
static int (*release)(uint64_t);
static const char* (*error)(void);

/* Sets a pointer to a function of the library. ISO C converts no void* to one. */
static void find(void* library, const char* name, void* pointer) {
  void* address = dlsym(library, name);
  if (address == NULL) {
    fprintf(stderr, "c_interface_main: %s\n", dlerror());
    exit(1);
  }
  memcpy(pointer, &address, sizeof address);
}

static void load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "c_interface_main: %s\n", dlerror());
    exit(1);
  }
  find(library, "sc_create", &create);
  find(library, "sc_train", &train);
  find(library, "sc_predict", &predict);
  find(library, "sc_free", &release);
  find(library, "sc_error", &error);
}

static void check(int succeeded) {
  if (!succeeded) {
    fprintf(stderr, "c_interface_main: %s\n", error());
    exit(1);
  }
}

/* Returns the next of a fixed sequence of numbers from -1 to 1. */
static float next_number(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* Fills points of a plane. A point's class is 1 if its coordinates have the same sign. */
static void make_points(uint32_t state, float* x, int64_t* y) {
  for (int row = 0; row < rows; ++row) {
    x[2 * row] = next_number(&state);
    x[2 * row + 1] = next_number(&state);
    y[row] = (x[2 * row] > 0) == (x[2 * row + 1] > 0);
  }
}

static int count_right(const float* probabilities, const int64_t* y) {
  int right = 0;
  for (int row = 0; row < rows; ++row) {
    right += (probabilities[2 * row + 1] > probabilities[2 * row]) == y[row];
  }
  return right;
}

int main(int argc, char** argv) {
  static float x[rows * inputs], probabilities[rows * classes];
  static int64_t y[rows];
  if (argc != 2) {
    fputs("usage: c_interface_main LIBRARY\n", stderr);
    return 2;
  }
  load(argv[1]);

  const uint64_t handle = create(inputs, 32, classes, /*seed=*/0);
  check(handle != 0);
  make_points(1, x, y);
  check(train(handle, x, rows * inputs, y, rows, /*epochs=*/10) == 0);

  make_points(2, x, y); /* other points */
  check(predict(handle, x, rows * inputs, probabilities, rows * classes) == 0);
  printf("%d of %d right\n", count_right(probabilities, y), rows);

  check(release(handle) == 0);
  if (predict(handle, x, rows * inputs, probabilities, rows * classes) != 0) {
    printf("%s\n", error());
  }
  return 0;
}
