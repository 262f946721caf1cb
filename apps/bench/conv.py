"""Benchmarks convolutions in both memory formats: NCHW (the default) and NHWC (channels_last)."""

import torch
from torch import nn

from training_steps import forms, training_steps


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


def conv3x3(channels_in, channels, stride):
    return nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.downsample = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels))
        self.conv1, self.bn1 = conv3x3(channels_in, channels, stride), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = conv3x3(channels, channels, 1), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.downsample(x)
        return self.relu(out)


def resnet18(num_classes):
    """torchvision's network with its initialization, which visits convolutions in the order in which torchvision lists
    them."""
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, stride=2, padding=1)]
    blocks = [Block(channels_in, channels, stride)
              for channels, first in [(64, 64), (128, 64), (256, 128), (512, 256)]
              for channels_in, stride in [(first, channels // first), (channels, 1)]]
    layers += [*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, num_classes)]
    for layer in layers:
        own = [layer.conv1, layer.conv2, *layer.downsample.modules()] if isinstance(layer, Block) else [layer]
        for conv in own:
            if isinstance(conv, nn.Conv2d):
                nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(*layers)


def resnet_step(variant, net, x, classes):
    target = torch.arange(len(x)) % classes
    return forms(variant, net, (x, target), lambda forward, x, y: (nn.functional.cross_entropy(forward(x), y),),
                 lambda parameters, fused: torch.optim.SGD(parameters, lr=0.01, fused=fused))


def resnet(variant, size):
    torch.manual_seed(0)
    net = resnet18(10)
    return resnet_step(variant, net, torch.randn(size, 3, 96, 96), 10)


def resnet50(variant, size):
    from torchvision import models

    torch.manual_seed(0)
    net = models.resnet50(num_classes=1000)
    return resnet_step(variant, net, torch.randn(size, 3, 224, 224), 1000)


def layer(variant, size):
    return make_layer(size, torch.contiguous_format)


def layer_nhwc(variant, size):
    return make_layer(size, torch.channels_last)


def cnn(variant, size):
    return make_cnn(variant, size, torch.contiguous_format)


def cnn_nhwc(variant, size):
    return make_cnn(variant, size, torch.channels_last)
