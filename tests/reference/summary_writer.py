"""Writes summary_writer.tfevents, an event file of Python's SummaryWriter.

Needs the packages torch and tensorboard (2.21.0 wrote the existing file). Run it by hand:
    python tests/reference/summary_writer.py tests/reference/summary_writer.tfevents
"""

import glob
import math
import shutil
import sys
import tempfile

from torch.utils.tensorboard import SummaryWriter

SCALARS = [  # the same as in summary_writer_test.cpp
    ("loss", 0.5, 1, 1.5),
    ("train_acc", 1 / 3, 2, 1763766138.123456),
    ("größe", -0.0, 0, 2.0),
    ("lr", math.nan, 127, 3.0),
    ("lr", math.inf, 128, 4.0),
    ("lr", -math.inf, 2**40, 5.0),
    ("x" * 200, 1e-40, 300, 6.0),
    ("before", 1.0, -1, 7.0),
]

with tempfile.TemporaryDirectory() as folder:
    writer = SummaryWriter(folder, purge_step=7)
    for tag, value, step, walltime in SCALARS:
        writer.add_scalar(tag, value, step, walltime)
    writer.close()
    shutil.copyfile(glob.glob(folder + "/*")[0], sys.argv[1])
