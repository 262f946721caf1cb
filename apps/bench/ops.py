"""Operators on small tensors: what calling them costs."""

import torch


def add(variant, size):
    a = torch.ones(4, 4)
    return [(a + a).sum().item()], lambda: a + a
