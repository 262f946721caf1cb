"""Writes the initial weights of sconce-train's networks, as Python draws them from one seed, for models_test.cpp.

    python train_models.py weights OUT

OUT becomes a dictionary from the network's name to its state.
"""

import sys

import torch
from torch import nn


def conv3x3(channels_in, channels_out, stride):
    return nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)


class Residual(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv3x3(channels_in, channels_out, stride), nn.BatchNorm2d(channels_out), nn.ReLU(),
            conv3x3(channels_out, channels_out, 1), nn.BatchNorm2d(channels_out))
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                                          nn.BatchNorm2d(channels_out))


# For images (N, 1, 8, 8) in 10 classes.
NETWORKS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)),
    "lenet": lambda: nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    "resnet": lambda: nn.Sequential(
        conv3x3(1, 16, 1), nn.BatchNorm2d(16), nn.ReLU(),
        Residual(16, 16, 1), Residual(16, 16, 1),
        Residual(16, 32, 2), Residual(32, 32, 1),
        Residual(32, 64, 2), Residual(64, 64, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
}

states = {}
for name, network in NETWORKS.items():
    torch.manual_seed(3)
    states[name] = dict(network().state_dict())
torch.save(states, sys.argv[2])
