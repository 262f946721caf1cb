"""Benchmarks epochs over in-memory synthetic 28x28 images, in shuffled batches of 256."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import updates
from training_steps import WHOLE_STEP, compiled_model, compiled_step, save_numbers


def epoch(net, variant, pictures):
    data, target = torch.randn(pictures, 1, 28, 28), torch.arange(pictures) % 10
    criterion = nn.CrossEntropyLoss()
    check = [criterion(net(data[:256]), target[:256]).item()]
    forward = net if variant in WHOLE_STEP else compiled_model(variant, net)

    def step(x, y):
        optimizer.zero_grad()
        output = forward(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        return loss, output

    def losses_of(forward, x, y):
        output = forward(x)
        return criterion(output, y), output

    if variant == "numbers":
        return save_numbers(net, (data, target))
    if variant == "default":
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        loader = DataLoader(TensorDataset(data, target), batch_size=256, shuffle=True)

        def run():
            loss_sum, correct = 0.0, 0
            for x, y in loader:
                loss, output = step(x, y)
                loss_sum += loss.item() * len(y)
                correct += (output.argmax(1) == y).sum().item()
            return loss_sum / pictures, correct / pictures
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
        if variant in WHOLE_STEP:
            step = compiled_step(variant, net, losses_of, updates.SGD(0.01))

        def run():
            loss_sum, correct = torch.zeros(()), torch.zeros((), dtype=torch.int64)
            for rows in torch.randperm(pictures).split(256):
                x, y = data.index_select(0, rows), target.index_select(0, rows)
                loss, output = step(x, y)
                loss_sum += loss.detach() * len(y)
                correct += (output.argmax(1) == y).sum()
            return loss_sum.item() / pictures, correct.item() / pictures

    return check, run


def mlp(variant, size):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return epoch(net, variant, size)


def lenet(variant, size):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    return epoch(net, variant, size)
