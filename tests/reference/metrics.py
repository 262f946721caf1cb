"""Writes metrics.txt: the results of torchmetrics 1.9.0 for random cases, one per line: 1,000 of classes and numbers, then
60 of each metric in FURTHER. (torchmetrics has the Apache-2.0 license; only numbers computed by it are stored here.)
tests/metrics/random_cases.cpp and tests/metrics/further_cases.cpp draw the same cases.

Run with a Python that has torch and torchmetrics:

  metrics.py                      writes metrics.txt
  metrics.py --each 1000 FILE     writes a file with 1,000 cases of each metric in FURTHER, which
                                  SCONCE_METRIC_VALUES=FILE test-training "metrics match torchmetrics*" compares
"""

import argparse
import math
import pathlib
import warnings

import torch
from torchmetrics import MeanAbsoluteError, MeanAbsolutePercentageError, MeanMetric, MeanSquaredError, R2Score
from torchmetrics import classification as of
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
    MulticlassPrecision,
    MulticlassRecall,
)
from torchmetrics.text import Perplexity

CASES = 1000
FURTHER = [
    *(of.BinaryAccuracy, of.BinaryPrecision, of.BinaryRecall, of.BinaryF1Score),
    *(of.MultilabelAccuracy, of.MultilabelPrecision, of.MultilabelRecall, of.MultilabelF1Score),
    *(of.BinaryAUROC, of.MulticlassAUROC, of.MultilabelAUROC),
    *(of.BinaryAveragePrecision, of.MulticlassAveragePrecision, of.MultilabelAveragePrecision),
    *(MeanAbsolutePercentageError, R2Score, Perplexity),
]
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
            # These values differ for each class and are exact in every type.
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
    # In torchmetrics, a mean either ignores nan or (1.9.0, nan_strategy="disable") keeps nan but ignores the weights.
    # sconce keeps both.
    return torch.tensor(math.nan) if kind == 7 and any_nan else metric.compute()


def widened(tensor):
    # torchmetrics computes sigmoids of 16-bit logits in 16 bits, and compares 16-bit numbers with thresholds in 16 bits.
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def draw_scores(draw, count, logits, between, nan):
    """Returns numbers that are exact in all types. With `between`, no number equals a threshold, as far as possible."""
    values = []
    for _ in range(count):
        if logits:  # never 0, whose probability is exactly 0.5
            value = (2 * draw(128) - 127) / 16
        elif between:
            value = (2 * draw(64) + 1) / 128
        else:
            value = draw(17) / 16
        values.append(math.nan if draw(64) == 0 and nan else value)
    return values


def draw_labels(draw, count, ignore_index):
    values = []
    for _ in range(count):
        ignored = draw(4) == 0
        right = draw(2)
        values.append(ignore_index if ignored and ignore_index is not None else right)
    return values


def label_scores(draw, kind):
    several = kind >= 4
    labels = 2 + draw(4)
    threshold = draw(9) / 8
    average = AVERAGES[draw(4)]
    ignore_index = [None, None, draw(2), -1][draw(4)]
    dtype = TYPES[draw(4)]
    target_type = torch.float32 if draw(4) == 0 else torch.long
    options = {"num_labels": labels, "average": average} if several else {}
    metric = FURTHER[kind](threshold=threshold, ignore_index=ignore_index, **options)
    extra = ([labels] if several else []) + [1 + draw(3) for _ in range(draw(3))]
    form = draw(4)
    for _ in range(1 + draw(3)):
        shape = [draw(6), *extra]
        count = math.prod(shape)
        target = torch.tensor(draw_labels(draw, count, ignore_index), dtype=target_type).reshape(shape)
        if form == 0:
            preds = torch.tensor([draw(2) for _ in range(count)], dtype=torch.long).reshape(shape)
        else:
            values = draw_scores(draw, count, logits=form > 1, between=False, nan=True)
            preds = widened(torch.tensor(values, dtype=dtype).reshape(shape))
        if shape[0] > 0:  # torchmetrics cannot reshape an empty batch
            metric.update(preds, target)
    return metric.compute()


def draw_thresholds(draw):
    """Returns thresholds, and whether the probabilities must lie between them, because rounding may move others."""
    form = draw(3)
    grid = [2, 3, 5, 9][draw(4)]
    number = 2 + draw(30)
    values = sorted(draw(17) / 16 for _ in range(1 + draw(5)))
    return [(grid, False), (number, True), (values, False)][form]


def curve_scores(draw, kind):
    task = (kind - 8) % 3  # binary, multiclass, multilabel
    columns = 2 + draw(4) if task else 1
    average = AVERAGES[draw(4)]
    thresholds, between = draw_thresholds(draw)
    max_fpr = [None, None, None, (1 + draw(8)) / 8][draw(4)]
    ignore_index = [None, None, draw(max(columns, 2) if task == 1 else 2), -1][draw(4)]
    dtype = TYPES[draw(4)]
    logits = draw(2) == 0
    options = {"thresholds": thresholds, "ignore_index": ignore_index}
    # torchmetrics' index is out of range if the curve ends before max_fpr, since no threshold is 0 or a score is nan.
    partial = kind == 8 and max_fpr is not None and isinstance(thresholds, int)
    if task:
        options["num_labels" if task == 2 else "num_classes"] = columns
        options["average"] = "macro" if task == 1 and average == "micro" else average
    elif partial:
        options["max_fpr"] = max_fpr
    metric = FURTHER[kind](**options)
    extra = [1 + draw(3) for _ in range(draw(3))]
    for _ in range(1 + draw(3)):
        shape = [draw(9), *([columns] if task else []), *extra]
        count = math.prod(shape)
        if task == 1:
            target = []
            for _ in range(count // columns):
                ignored = draw(4) == 0
                right = draw(columns)
                target.append(ignore_index if ignored and ignore_index is not None else right)
            target = torch.tensor(target, dtype=torch.long).reshape([shape[0], *extra])
        else:
            target = torch.tensor(draw_labels(draw, count, ignore_index), dtype=torch.long).reshape(shape)
        values = draw_scores(draw, count, logits, between, nan=not partial)
        preds = widened(torch.tensor(values, dtype=dtype).reshape(shape))
        if shape[0] > 0:
            metric.update(preds, target)
    return metric.compute()


def percentage_error(draw):
    metric = MeanAbsolutePercentageError()
    metric.set_dtype(torch.float64)
    extra = [1 + draw(3) for _ in range(draw(3))]
    for _ in range(1 + draw(3)):
        shape = [draw(6), *extra]
        first, second = numbers(draw, shape), numbers(draw, shape)
        metric.update(first, second)
    return metric.compute()


def r2_score(draw):
    num_outputs = 1 + draw(3)
    adjusted = draw(4)
    multioutput = ["raw_values", "uniform_average", "variance_weighted"][draw(3)]
    form = draw(8)
    metric = R2Score(adjusted=adjusted, multioutput=multioutput)
    metric.set_dtype(torch.float64)
    examples = 0
    for _ in range(1 + draw(3)):
        shape = [draw(6), num_outputs] if num_outputs > 1 else [draw(6)]
        preds, target = numbers(draw, shape), numbers(draw, shape)
        if form == 0:
            preds = target
        elif form == 1:
            target = torch.full_like(target, 2.5)
        elif form == 2:  # some sums of squares are so small that they count as 0
            preds, target = preds / 2**12, target / 2**12
        examples += shape[0]
        metric.update(preds, target)
    if examples > 1:
        return metric.compute()
    # torchmetrics throws.
    return torch.full([num_outputs if multioutput == "raw_values" else 1], math.nan)


def perplexity(draw):
    classes = 2 + draw(5)
    ignore_index = [None, None, draw(classes), -100][draw(4)]
    dtype = TYPES[draw(4)]
    metric = Perplexity(ignore_index=ignore_index)
    metric.set_dtype(torch.float64)
    for _ in range(1 + draw(3)):
        shape = [draw(4), 1 + draw(4)]
        target = []
        for _ in range(math.prod(shape)):
            ignored = draw(4) == 0
            right = draw(classes)
            target.append(ignore_index if ignored and ignore_index is not None else right)
        preds = draw_scores(draw, math.prod(shape) * classes, logits=True, between=False, nan=draw(4) == 0)
        preds = torch.tensor(preds, dtype=dtype).reshape([*shape, classes])
        # The probabilities are computed in float64 here, because torchmetrics computes their logarithms.
        metric.update(preds.double(), torch.tensor(target, dtype=torch.long).reshape(shape))
    return metric.compute()


def value_of(case):
    draw = Draw(case)
    if case < CASES:
        kind = draw(8)
        return classification(draw, kind) if kind < 5 else regression(draw, kind)
    kind = (case - CASES) % len(FURTHER)
    if kind < 8:
        return label_scores(draw, kind)
    if kind < 14:
        return curve_scores(draw, kind)
    return [percentage_error, r2_score, perplexity][kind - 14](draw)


def write(path, each):
    lines = []
    for case in range(CASES + each * len(FURTHER)):
        lines.append(" ".join(f"{x:.7g}" for x in value_of(case).flatten().tolist()))
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--each", type=int, default=60)
parser.add_argument("file", nargs="?", default=pathlib.Path(__file__).with_suffix(".txt"))
arguments = parser.parse_args()
warnings.simplefilter("ignore")
write(arguments.file, arguments.each)
