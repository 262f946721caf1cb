/* A classifier with a C interface, for programs in any language that can call C.
 *
 * A handle is a number. 0 is never a handle, and a freed number is never used again.
 *
 * Functions that return an int return 0 on success. After any other result, sc_error() returns the
 * reason. A failed call changes nothing, except that a training run that fails after it started may
 * have changed the weights.
 *
 * Any thread may call any function. Calls with different handles run at once, and calls with one
 * handle run one after another. Memory that is passed in belongs to the caller, and is used only
 * during the call. Each pointer is followed by its number of elements. */
#ifndef C_INTERFACE_H
#define C_INTERFACE_H

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Creates a network with one hidden layer and returns its handle, or 0 on an error. The weights
 * and the order of the batches depend only on the arguments. */
uint64_t sc_create(int64_t inputs, int64_t hidden, int64_t classes, uint64_t seed);

/* Trains for this number of epochs. x contains rows of `inputs` finite numbers, one row after
 * another, and y contains the class of each row, from 0. A second call continues. */
int sc_train(uint64_t handle, const float* x, int64_t x_count, const int64_t* y, int64_t y_count,
             int64_t epochs);

/* Writes the probability of each class for each row to out, one row after another. out_count must
 * be the number of rows times the number of classes. */
int sc_predict(uint64_t handle, const float* x, int64_t x_count, float* out, int64_t out_count);

/* Writes the weights to a safetensors file. */
int sc_save(uint64_t handle, const char* path);

/* Reads weights that sc_save wrote for a network of the same sizes. Training restarts from them. */
int sc_load(uint64_t handle, const char* path);

/* Ends the use of a handle. A call that is running in another thread completes. */
int sc_free(uint64_t handle);

/* Returns why this thread's last call failed, or "" if it succeeded. The text is valid until the
 * thread's next call. */
const char* sc_error(void);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
