"""Writes three event files of Python's SummaryWriter into a folder.

summary_writer.tfevents contains scalars, summary_writer_tabs.tfevents contains images, histograms, and texts,
and summary_writer_hparams.tfevents contains the output of add_hparams. Needs the packages torch, tensorboard
(2.21.0 wrote the existing files), and pillow. Run it by hand:
    python tests/reference/summary_writer.py tests/reference
"""

import glob
import math
import pathlib
import shutil
import sys
import tempfile

import torch
from torch.utils.tensorboard import SummaryWriter

# All inputs are the same as in summary_writer_test.cpp.

SCALARS = [
    ("loss", 0.5, 1, 1.5),
    ("train_acc", 1 / 3, 2, 1763766138.123456),
    ("größe", -0.0, 0, 2.0),
    ("lr", math.nan, 127, 3.0),
    ("lr", math.inf, 128, 4.0),
    ("lr", -math.inf, 2**40, 5.0),
    ("x" * 200, 1e-40, 300, 6.0),
    ("before", 1.0, -1, 7.0),
]


def sample(*shape):
    """Returns values from -1/16 to 17/16, whose sums have no rounding errors."""
    return torch.arange(math.prod(shape)).remainder(37).sub(2).div(32).view(shape)


def of_bytes(*shape):
    return torch.arange(math.prod(shape)).remainder(251).to(torch.uint8).view(shape)


def add_scalars(writer):
    for tag, value, step, walltime in SCALARS:
        writer.add_scalar(tag, value, step, walltime)


def add_tabs(writer):
    at = {"walltime": 1.5}
    writer.add_image("rgb", sample(3, 5, 7), 1, **at)
    writer.add_image("rgb bytes", of_bytes(6, 4, 3), 2, dataformats="HWC", **at)
    writer.add_image("gray", sample(8, 9), 3, dataformats="HW", **at)
    writer.add_image("mask", sample(3, 8) > 0.5, 4, dataformats="wh", **at)
    writer.add_image("one channel", sample(1, 5, 3).double(), 5, **at)
    writer.add_image("two channels", of_bytes(2, 5, 3), 6, **at)
    writer.add_image("four channels", of_bytes(5, 4, 6), 7, dataformats="WCH", **at)
    writer.add_image("labels", torch.tensor([[-1, 0], [1, 9]]), 8, dataformats="HW", **at)
    writer.add_image("not a number", torch.full((3, 1, 2), math.nan), 9, **at)
    writer.add_images("grid", sample(10, 1, 3, 2), 10, **at)
    writer.add_images("grid bytes", of_bytes(3, 2, 4, 3), 11, dataformats="nhwc", **at)

    values = sample(20, 10).mul(8)
    writer.add_histogram("default bins", values, 1, **at)
    writer.add_histogram("integers", torch.arange(-5, 20), 2, **at)
    writer.add_histogram("bfloat16", sample(40).bfloat16(), 3, **at)
    writer.add_histogram("zero", torch.zeros(1), 4, **at)
    writer.add_histogram("edges", values, 5, bins=[-1, 0, 0.5, 2, 3], **at)
    writer.add_histogram("outside", values, 6, bins=[0.5, 0.5, 1, 7, 99, 100], **at)
    writer.add_histogram("fewer bins", values, 7, max_bins=31, **at)
    writer.add_histogram_raw("raw", -1, 2, 3, 1.5, 5, [0, 1, 2], [1, 0, 2], 8, **at)

    writer.add_text("note", "# Größe\n\n| a | b |\n| - | - |\n| 1 | 2 |", 1, **at)
    writer.add_text("nothing", "", 0, **at)


def add_hparams(writer):
    writer.add_hparams(
        {"lr": 0.1, "batch_size": 32, "optimizer": "adamw", "amp": True, "decay": 0.0},
        {"hparam/accuracy": 0.75, "hparam/loss": math.nan},
        hparam_domain_discrete={"lr": [0.1, 0.01], "optimizer": ["sgd", "adamw"]},
        run_name="one", global_step=3)


def write(add, path, **options):
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder, **options) as writer:
            add(writer)
        files = glob.glob(folder + "/*/*") or glob.glob(folder + "/*")
        shutil.copyfile(files[0], path)


out = pathlib.Path(sys.argv[1])
write(add_scalars, out / "summary_writer.tfevents", purge_step=7)
write(add_tabs, out / "summary_writer_tabs.tfevents")
write(add_hparams, out / "summary_writer_hparams.tfevents")
