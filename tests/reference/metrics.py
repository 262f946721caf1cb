"""Writes metrics.txt: the results of torchmetrics 1.9.0 for 1,000 random cases, a line each. (torchmetrics has the
Apache-2.0 license; only numbers computed by it are stored here.) tests/metrics/random_cases.cpp draws the same cases.

Run with a Python that has torch and torchmetrics: python3 tests/reference/metrics.py
"""

import math
import pathlib

import torch
from torchmetrics import MeanAbsoluteError, MeanMetric, MeanSquaredError
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassPrecision,
    MulticlassRecall,
)

CASES = 1000
SCORES = [MulticlassAccuracy, MulticlassPrecision, MulticlassRecall, MulticlassF1Score]
AVERAGES = ["micro", "macro", "weighted", "none"]
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


class Draw:
    def __init__(self, seed):
        self.state = seed

    def __call__(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def classification(draw, kind):
    classes = 2 + draw(5)
    labels = draw(4) == 0
    average = AVERAGES[draw(4)]
    top_k = 1 + draw(classes) if not labels and draw(2) else 1
    ignore_index = [None, None, draw(classes), -1][draw(4)]
    dtype = TYPES[draw(4)]
    if kind < 4:
        metric = SCORES[kind](classes, average=average, top_k=top_k, ignore_index=ignore_index)
    else:
        metric = MulticlassConfusionMatrix(classes, ignore_index=ignore_index)
    extra = [1 + draw(3) for _ in range(draw(3))]
    for _ in range(1 + draw(3)):
        shape = [draw(6), *extra]
        target, preds = [], []
        for _ in range(math.prod(shape)):
            ignored = draw(4) == 0
            right = draw(classes)
            target.append(ignore_index if ignored and ignore_index is not None else right)
            # Different for each class, and exact in every type.
            row = [8 * draw(31) + c for c in range(classes)]
            if draw(16) == 0:
                row[draw(classes)] = math.nan
            preds += [draw(classes)] if labels else row
        if shape[0] == 0 and kind < 4:
            continue  # torchmetrics cannot reshape an empty batch, which adds nothing anyway
        target = torch.tensor(target, dtype=torch.long).reshape(shape)
        if labels:
            preds = torch.tensor(preds, dtype=torch.long).reshape(shape)
        else:
            preds = torch.tensor(preds, dtype=dtype).reshape([*shape, classes]).movedim(-1, 1)
        metric.update(preds, target)
    return metric.compute()


def numbers(draw, shape):
    values = []
    for _ in range(math.prod(shape)):
        value = (draw(1024) - 512) / 8
        values.append(math.nan if draw(64) == 0 else value)
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def regression(draw, kind):
    num_outputs = 1 + draw(3) if draw(2) else 1
    squared = draw(4) != 0
    if kind == 5:
        metric = MeanSquaredError(squared=squared, num_outputs=num_outputs)
    elif kind == 6:
        metric = MeanAbsoluteError(num_outputs=num_outputs)
    else:
        metric = MeanMetric(nan_strategy="ignore")
    any_nan = False
    metric.set_dtype(torch.float64)
    extra = [num_outputs] if num_outputs > 1 else [1 + draw(3) for _ in range(draw(3))]
    for _ in range(1 + draw(3)):
        shape = [draw(6), *extra]
        first, second = numbers(draw, shape), numbers(draw, shape)
        metric.update(first, second.square() if kind == 7 else second)
        any_nan = any_nan or bool((first + second).isnan().any())
    # torchmetrics' mean either ignores nan, or (1.9.0, nan_strategy="disable") keeps nan but ignores the weights.
    # sconce keeps both.
    return torch.tensor(math.nan) if kind == 7 and any_nan else metric.compute()


lines = []
for case in range(CASES):
    draw = Draw(case)
    kind = draw(8)
    value = classification(draw, kind) if kind < 5 else regression(draw, kind)
    lines.append(" ".join(f"{x:.7g}" for x in value.flatten().tolist()))
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
