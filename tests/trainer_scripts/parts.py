"""The parts of a script's oracle, written in plain PyTorch: data, loaders, models, metrics, optimizers, and
callbacks."""
import copy
import math
import zlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from torch.utils.data.distributed import DistributedSampler

FEATURES, CLASSES = 8, 3


class Planned(Exception):
    """The exception that a script throws from a hook."""


class BadItem(Exception):
    """The exception that a source throws for a bad item."""


class Refused(Exception):
    """An error from the Trainer, identified by its name."""


def number(value):
    return "nan" if math.isnan(value) else "%.17g" % value


def numbers(tensor):
    return " ".join(map(number, tensor.detach().double().flatten().tolist()))


class Trace:
    """The events of a script, line by line."""

    def __init__(self, values):
        self.values, self.lines, self.depth = values, [], 0

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def tensors(self, name, tensors):
        crc, values = 0, ""
        for tensor in tensors:
            flat = tensor.detach().contiguous()
            crc = zlib.crc32(flat.numpy().tobytes(), crc)
            values += f" [{numbers(flat)}]" if self.values else ""
        self.line(f"{name} {crc:08x}{values}")


# Data


def rows(count, first, seed):
    places = torch.arange(count * FEATURES) + first * FEATURES
    whole = (places * 7919 + seed * 104729) % 2003 - 1001
    data = (whole.double() / 512).float().view(count, FEATURES)
    index = torch.arange(count) + first
    data[:, 0] = index.float() / 64
    return data, (index * 7 + seed) % CLASSES


def items_of(data):
    return numbers(data[:, 0] * 64)


def mix_seeds(*parts):
    """Applies SplitMix64 to the seed, with epoch and index added to its results."""
    mask, x = 2**64 - 1, 0
    for part in parts:
        x = (x + part + 0x9E3779B97F4A7C15) & mask
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
    return x


def generator(seed):
    return torch.Generator().manual_seed(seed)


class Epochs:
    """The epoch count of a loader, which its copies share."""

    def __init__(self, moves):
        self.next, self.moves = 0, moves

    def take(self):
        epoch = self.next
        self.next += self.moves
        return epoch


class DataLoader:
    def __init__(self, spec, rows):
        self.spec, (self.data, self.target) = spec, rows
        is_shared = spec.get("sampler") == "distributed" and spec.get("shuffle")
        self.epochs = Epochs(moves=not is_shared)  # otherwise only set_epoch advances it, for the other ranks

    def copy(self):
        return copy.copy(self)

    def order(self, epoch):
        spec, n, seed = self.spec, len(self.data), self.spec.get("seed", 0)
        kind = spec.get("sampler", "random" if spec.get("shuffle") else None)
        if kind == "random":
            return torch.randperm(n, generator=generator(seed + epoch)).tolist()
        if kind == "weighted":
            weights = torch.arange(1, n + 1, dtype=torch.double)
            return torch.multinomial(weights, spec.get("samples", n), spec.get("replacement", True),
                                     generator=generator(seed + epoch)).tolist()
        if kind == "distributed":
            sampler = DistributedSampler(range(n), 2, spec.get("rank", 0), spec.get("shuffle", False), seed)
            sampler.set_epoch(epoch)
            return list(sampler)
        return list(range(n))

    def batches(self, epoch):
        """Returns the items of each batch."""
        order, size = self.order(epoch), self.spec["batch"]
        all_batches = [order[i:i + size] for i in range(0, len(order), size)]
        if self.spec.get("drop_last") and all_batches and len(all_batches[-1]) < size:
            all_batches.pop()
        return all_batches

    def __len__(self):
        return len(self.batches(0))

    def begin(self, first=0, epoch=None):
        """Yields the batches of the given epoch or, if none is given, the next epoch."""
        epoch = self.epochs.take() if epoch is None else epoch
        if first > len(self):
            raise Refused("batch index")
        return self.read(self.batches(epoch), first, epoch)

    def read(self, batches, first, epoch):
        for index in range(first, len(batches)):
            yield self.batch(batches[index], epoch, index)

    def batch(self, items, epoch, index):
        if "workers" in self.spec:
            for item in items:
                if item in self.spec.get("bad", ()):
                    raise BadItem(item)
        rows = torch.tensor(items)
        data, target = self.data[rows], self.target[rows]
        if "workers" in self.spec:
            for row, item in zip(data, items):
                row[1:].add_(torch.rand(7, generator=generator(mix_seeds(self.spec.get("seed", 0), epoch, item))))
        if self.spec.get("noise"):
            seed = mix_seeds(self.spec.get("noise_seed", 0), epoch, index)
            data[:, 1:].add_(torch.rand(len(data), 7, generator=generator(seed)))
        return data, target


# Models and metrics


class Net(nn.Module):
    def __init__(self, kind, dropout, trace):
        super().__init__()
        layers, width = [nn.Flatten()], FEATURES
        if kind == "conv":
            layers += [nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 3, 2), nn.ReLU(), nn.Flatten()]
            width = 9
        elif kind != "linear":
            width = 6
            layers += [nn.Linear(FEATURES, width), *([nn.BatchNorm1d(width)] if kind == "norm" else []), nn.ReLU()]
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, CLASSES)
        self.trace = [trace]

    def forward(self, data):
        self.trace[0].line(("train " if self.training else "test ") + items_of(data))
        return self.head(self.body(data))

    def part(self, name):
        return list({"head": self.head, "body": self.body}.get(name, self).parameters())


class Metric:
    def __init__(self, name, size):
        self.name, self.sums = name, torch.zeros(size, dtype=torch.double)
        self.runs = 0  # the number of fits, epochs, and evaluations that use it

    def reset(self):
        self.sums = torch.zeros_like(self.sums)

    def update(self, output, target):
        self.sums = self.sums + self.of(output.detach(), target)


class Accuracy(Metric):
    def __init__(self):
        super().__init__("acc", 3)

    def of(self, output, target):
        hits = (output.argmax(1) == target).sum()
        return torch.tensor([hits, len(target), len(target)], dtype=torch.double)

    def value(self):
        return (self.sums[0] / self.sums[2]).item()


class Cells(Metric):
    def __init__(self):
        super().__init__("cells", CLASSES * CLASSES)

    def of(self, output, target):
        cells = torch.zeros(CLASSES, CLASSES, dtype=torch.double)
        for right, answer in zip(target.tolist(), output.argmax(1).tolist()):
            cells[right, answer] += 1
        return cells.flatten()

    def value(self):
        return None


class F1(Metric):
    def __init__(self):
        super().__init__("f1", 3 * CLASSES)

    def of(self, output, target):
        answer = output.argmax(1)
        counts = [target[answer == target], answer, target]
        return torch.cat([torch.bincount(c, minlength=CLASSES) for c in counts]).double()

    def value(self):
        hits, answers, targets = self.sums.view(3, CLASSES)
        there = answers + targets > 0
        score = torch.where(there, 2 * hits / (answers + targets), 0)
        return (score.sum() / there.sum()).item() if there.any() else 0.0


class Spread(Metric):
    def __init__(self):
        super().__init__("spread", CLASSES)

    def of(self, output, target):
        return output.sum(0, dtype=torch.double)

    def value(self):
        return None


METRICS = {"acc": Accuracy, "cells": Cells, "f1": F1, "spread": Spread}


def mse(output, target):
    return F.mse_loss(output.select(1, 0), target.to(output.dtype))


# Optimizers and schedulers


def make_optimizer(spec, groups):
    kernels = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[spec["kernels"]]
    options = {"lr": spec["lr"], "weight_decay": spec.get("weight_decay", 0.0), **kernels}
    groups = [{"params": list(group)} for group in groups]
    if spec["kind"] == "torch":  # LibTorch's own class
        return torch.optim.SGD(groups, spec["lr"], momentum=0.75, weight_decay=options["weight_decay"], foreach=False)
    if spec["kind"] == "sgd":
        options.update(momentum=spec.get("momentum", 0.0), nesterov=spec.get("flag", False))
        sgd = torch.optim.SGD(groups, **options)
        if options["nesterov"] and spec["kernels"] == "foreach":
            keep_gradients(sgd)
        return sgd
    flag = spec.get("flag", False)
    if spec["kind"] == "adagrad":
        return torch.optim.Adagrad(groups, **options, lr_decay=0.25 if flag else 0)
    if spec["kind"] == "rmsprop":
        return torch.optim.RMSprop(groups, **options, momentum=spec.get("momentum", 0.0), centered=flag)
    if spec["kind"] == "nadam":
        return torch.optim.NAdam(groups, **options, decoupled_weight_decay=flag)
    kind = torch.optim.Adam if spec["kind"] == "adam" else torch.optim.AdamW
    return kind(groups, **options, amsgrad=flag)


def keep_gradients(optimizer):
    """Makes each step work on copies of the gradients. Python's foreach SGD adds Nesterov's momentum to the gradients
    themselves, which affects a later step with the same gradients. sconce's SGD leaves them unchanged."""
    kept = {}

    def before(*_):
        kept.update({p: p.grad for p in parameters_of(optimizer) if p.grad is not None})
        for p, grad in kept.items():
            p.grad = grad.clone()

    def after(*_):
        for p, grad in kept.items():
            p.grad = grad
        kept.clear()

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def first_groups(spec, net):
    if spec["covers"] != "both":
        return [net.part(spec["covers"])]
    return [net.part("body"), net.part("head")]


def parameters_of(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def step(optimizer):
    """Runs a step. Python's fused SGD fails if only some of a group's parameters have a momentum buffer."""
    group = optimizer.param_groups[0]
    if type(optimizer) is not torch.optim.SGD or not group["fused"] or group["momentum"] == 0:
        return optimizer.step()
    old = {p for p, state in optimizer.state.items() if state.get("momentum_buffer") is not None}
    grads = {p: p.grad for p in parameters_of(optimizer)}
    for is_old in (True, False):
        for p, grad in grads.items():
            p.grad = grad if (p in old) == is_old else None
        optimizer.step()
    for p, grad in grads.items():
        p.grad = grad


def state_of(optimizer, p):
    return {key: value for key, value in sorted(optimizer.state.get(p, {}).items()) if value is not None}


def make_scheduler(kind, optimizer):
    return {"step": lambda: lr_scheduler.StepLR(optimizer, 2, 0.5),
            "exponential": lambda: lr_scheduler.ExponentialLR(optimizer, 0.875),
            "cosine": lambda: lr_scheduler.CosineAnnealingLR(optimizer, 5, 0.001),
            "linear": lambda: lr_scheduler.LinearLR(optimizer),
            "restarts": lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2, 0.001),
            "constant": lambda: lr_scheduler.ConstantLR(optimizer, 0.5, 3),
            "polynomial": lambda: lr_scheduler.PolynomialLR(optimizer, 6, 1.5),
            "plateau": lambda: lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)}[kind]()


class Averages:
    """Moving averages of a model's tensors. Buffers are averaged only on request and are otherwise copied."""

    def __init__(self, net, buffers):
        self.count = 0
        self.pairs = [(p, p.detach().clone(), False) for p in net.parameters()]
        self.pairs += [(b, b.detach().clone(), not buffers) for b in net.buffers()]

    @torch.no_grad()
    def update(self):
        moved = [(p, a) for p, a, is_copied in self.pairs if not is_copied and self.count > 0]
        for p, a, is_copied in self.pairs:
            if is_copied or self.count == 0:
                a.copy_(p)
            elif not a.is_floating_point():
                a.copy_(a * 0.75 + p * 0.25)
        floating = [(p.detach(), a) for p, a in moved if a.is_floating_point()]
        if floating:
            torch._foreach_lerp_([a for _, a in floating], [p for p, _ in floating], 1 - 0.75)
        self.count += 1

    def swap(self):
        for i, (p, a, is_copied) in enumerate(self.pairs):
            own = p.data
            p.data = a
            self.pairs[i] = (p, own, is_copied)

    def tensors(self):
        return [torch.tensor(self.count), *(a for _, a, _ in self.pairs)]
