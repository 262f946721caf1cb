"""Benchmarks optimizer steps and gradient clipping without a model."""

import torch


def small_parameters(count):
    torch.manual_seed(0)
    parameters = []
    for _ in range(count):
        parameters.append(torch.randn(64).requires_grad_())
        parameters[-1].grad = torch.randn(64)
    return parameters


def step_of(parameters, variant):
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=variant == "best")
    optimizer.step()
    return [parameters[0].sum().item()], optimizer.step


def adamw_small(variant, size):
    return step_of(small_parameters(size), variant)


def adamw_large(variant, size):
    torch.manual_seed(0)
    parameter = torch.randn(size).requires_grad_()
    parameter.grad = torch.randn(size)
    return step_of([parameter], variant)


def clip_small(variant, size):
    parameters = small_parameters(size)
    foreach = True if variant == "best" else None

    def clip():
        return torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=foreach)

    return [clip().item()], clip
