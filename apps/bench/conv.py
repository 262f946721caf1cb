"""Convolutions in both memory formats: NCHW, the default, and NHWC, channels_last."""

import torch
from torch import nn

from training_steps import training_steps


def make_layer(size, memory_format):
    torch.manual_seed(0)
    conv = nn.Conv2d(32, 64, 3, padding=1).to(memory_format=memory_format)
    x = torch.randn(size, 32, 28, 28).contiguous(memory_format=memory_format)

    def call():
        with torch.no_grad():
            return conv(x)

    return [conv(x).square().mean().item()], call


def make_cnn(variant, size, memory_format):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(memory_format=memory_format)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=variant == "best")
    x = torch.randn(size, 3, 32, 32).contiguous(memory_format=memory_format)
    target = torch.arange(size) % 10
    return training_steps(optimizer, lambda: criterion(net(x), target))


def layer(variant, size):
    return make_layer(size, torch.contiguous_format)


def layer_nhwc(variant, size):
    return make_layer(size, torch.channels_last)


def cnn(variant, size):
    return make_cnn(variant, size, torch.contiguous_format)


def cnn_nhwc(variant, size):
    return make_cnn(variant, size, torch.channels_last)
