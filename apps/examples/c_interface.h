/* A classifier with a C interface, for programs in any language that can call C.
 *
 * A handle is a nonzero number. The number of a freed handle is never reused.
 *
 * Functions that return an int return 0 on success. After any other result, call sc_error() to get
 * the reason. A failed call changes nothing, with one exception: if training fails after it has
 * started, the weights may have changed.
 *
 * Any thread can call any function. Calls with different handles run concurrently, and calls with
 * the same handle run one after another. The caller owns the memory that it passes in, and the
 * library uses it only during the call. Each array is followed by its number of elements. */
#ifndef C_INTERFACE_H
#define C_INTERFACE_H

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Creates a network with one hidden layer and returns its handle, or 0 on error. The weights
 * and the order of the batches depend only on the arguments. */
uint64_t sc_create(int64_t inputs, int64_t hidden, int64_t classes, uint64_t seed);

/* Trains for the given number of epochs. x contains rows of `inputs` finite numbers, one row after
 * another, and y contains the class of each row, starting at 0. Another call continues training. */
int sc_train(uint64_t handle, const float* x, int64_t x_count, const int64_t* y, int64_t y_count,
             int64_t epochs);

/* Writes the probabilities of all classes to out, one row after another. out_count must equal the
 * number of rows times the number of classes. */
int sc_predict(uint64_t handle, const float* x, int64_t x_count, float* out, int64_t out_count);

/* Writes the weights to a safetensors file. */
int sc_save(uint64_t handle, const char* path);

/* Loads weights that sc_save wrote for a network of the same size. Training restarts from them. */
int sc_load(uint64_t handle, const char* path);

/* Frees a handle. If a call is still running in another thread, that call completes. */
int sc_free(uint64_t handle);

/* Returns the reason why this thread's last call failed, or "" if it succeeded. The text is valid
 * until the thread's next call. */
const char* sc_error(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
