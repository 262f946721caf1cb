"""Trains and predicts through c_interface.h with ctypes, without Python's torch. Prints the same output as
c_interface_main.c."""
import array
import ctypes
import sys

ROWS, INPUTS, CLASSES = 1000, 2, 2
FLOATS, INTEGERS = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_int64)
u64, i64, text = ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p


def load(path):
    """Returns the library with argtypes set. Without them, ctypes would pass numbers as 32-bit integers."""
    library = ctypes.CDLL(path)
    library.sc_create.restype, library.sc_create.argtypes = u64, [i64, i64, i64, u64]
    library.sc_train.argtypes = [u64, FLOATS, i64, INTEGERS, i64, i64]
    library.sc_predict.argtypes = [u64, FLOATS, i64, FLOATS, i64]
    library.sc_save.argtypes = library.sc_load.argtypes = [u64, text]
    library.sc_free.argtypes = [u64]
    library.sc_error.restype, library.sc_error.argtypes = text, []
    return library


class Classifier:
    """An object that wraps a handle. Its methods raise RuntimeError with the library's error text."""

    def __init__(self, library, inputs, hidden, classes, seed=0):
        self.library, self.inputs, self.classes = library, inputs, classes
        self.handle = library.sc_create(inputs, hidden, classes, seed)
        self.check(self.handle == 0)

    def check(self, failed):
        if failed:
            raise RuntimeError(self.library.sc_error().decode())

    def train(self, x, y, epochs):
        self.check(self.library.sc_train(self.handle, pointer(x), len(x), pointer(y), len(y), epochs))

    def predict(self, x):
        """Returns the class probabilities, one row after another."""
        out = array.array("f", bytes(4 * len(x) // self.inputs * self.classes))
        self.check(self.library.sc_predict(self.handle, pointer(x), len(x), pointer(out), len(out)))
        return out

    def save(self, path):
        self.check(self.library.sc_save(self.handle, path.encode()))

    def load(self, path):
        self.check(self.library.sc_load(self.handle, path.encode()))

    def free(self):
        self.check(self.library.sc_free(self.handle))


def pointer(numbers):
    """Returns a pointer to the memory of an array of floats ("f") or 64-bit integers ("q"), without copying it."""
    kind = {"f": ctypes.c_float, "q": ctypes.c_int64}[numbers.typecode]
    return ctypes.cast((kind * len(numbers)).from_buffer(numbers), ctypes.POINTER(kind))


def make_points(state):
    """Returns points in a plane and their classes. The class is 1 if both coordinates have the same sign."""
    x = array.array("f")
    for _ in range(ROWS * INPUTS):
        state = (state * 1664525 + 1013904223) % 2**32
        x.append((state >> 8) / 2**23 - 1)
    y = array.array("q", ((x[i] > 0) == (x[i + 1] > 0) for i in range(0, len(x), INPUTS)))
    return x, y


def main(path):
    classifier = Classifier(load(path), INPUTS, 32, CLASSES)
    classifier.train(*make_points(1), epochs=10)

    x, y = make_points(2)
    probabilities = classifier.predict(x)
    right = sum((probabilities[2 * row + 1] > probabilities[2 * row]) == y[row] for row in range(ROWS))
    print(right, "of", ROWS, "right")

    classifier.free()
    try:
        classifier.predict(x)
    except RuntimeError as error:
        print(error)


if __name__ == "__main__":
    main(sys.argv[1])
