"""Benchmarks small operators, which spend most of their time on call overhead, and matrix products, which spend most
of their time in the kernel.
"""

import torch


def add(variant, size):
    a = torch.ones(4, 4)
    return [(a + a).sum().item()], lambda: a + a


def mul(variant, size):
    a = torch.ones(4, 4)
    return [(a * a).sum().item()], lambda: a * a


def relu(variant, size):
    a = torch.ones(4, 4)
    return [torch.relu(a).sum().item()], lambda: torch.relu(a)


def copy(variant, size):
    source, target = torch.ones(size), torch.zeros(size)
    return [source.sum().item()], lambda: target.copy_(source)


def product(variant, size):
    torch.manual_seed(0)
    a, b = torch.randn(size, size), torch.randn(size, size)
    return [torch.mm(a, b).sum().item()], lambda: torch.mm(a, b)


def product_into(variant, size):
    torch.manual_seed(0)
    a, b, c = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    torch.mm(a, b, out=c)
    return [c.sum().item()], lambda: torch.mm(a, b, out=c)


def norms_read(variant, size):
    torch.manual_seed(0)
    a = torch.randn(100, 100)

    def log():
        for _ in range(1000):
            last = torch.mm(a, a).norm().item()
        return last

    return [log()], log


def norms_kept(variant, size):
    torch.manual_seed(0)
    a = torch.randn(100, 100)

    def log():
        return torch.stack([torch.mm(a, a).norm() for _ in range(1000)])[999].item()

    return [log()], log


def norms_written(variant, size):
    torch.manual_seed(0)
    a = torch.randn(100, 100)

    def log():
        norms = torch.zeros(1000)
        for i in range(1000):
            norms[i] = torch.mm(a, a).norm()
        return norms[999].item()

    return [log()], log


def norms_batched(variant, size):
    torch.manual_seed(0)
    a = torch.randn(100, 100).expand(1000, 100, 100)

    def log():
        return torch.bmm(a, a).flatten(1).norm(2, 1)[999].item()

    return [log()], log
