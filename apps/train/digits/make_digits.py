"""Writes scikit-learn's digits to four IDX files next to this script, with the names of MNIST's files.

Run it in a Python environment with scikit-learn: python3 apps/train/digits/make_digits.py
"""

import pathlib
import struct

import numpy as np
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).parent
UINT8 = 0x08


def write_idx(name, array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, UINT8, array.ndim, *array.shape)
    (HERE / name).write_bytes(header + array.astype(np.uint8).tobytes())


digits = load_digits()
is_test = np.arange(len(digits.target)) % 5 == 0
for prefix, rows in (("train", ~is_test), ("t10k", is_test)):
    write_idx(f"{prefix}-images-idx3-ubyte", digits.images[rows])
    write_idx(f"{prefix}-labels-idx1-ubyte", digits.target[rows])
