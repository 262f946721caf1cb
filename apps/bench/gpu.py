"""Work on a GPU: matrix products, transfers, and data loading. Without a GPU, the same code runs on the CPU to verify
that both languages compute the same values.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def wait():
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def product_of(size, dtype):
    torch.manual_seed(0)
    a, b = (torch.randn(size, size).to(DEVICE, dtype) for _ in range(2))
    c = torch.mm(a, b)
    return [c[0, 0].item()], lambda: torch.mm(a, b, out=c), wait


def product(variant, size):
    return product_of(size, torch.float32)


def product_tf32(variant, size):
    torch.set_float32_matmul_precision("high")
    return product_of(size, torch.float32)


def product_bf16(variant, size):
    return product_of(size, torch.bfloat16)


def two_products(variant, size):
    torch.manual_seed(0)
    second = torch.device("cuda:1") if torch.cuda.device_count() > 1 else DEVICE
    a, b = torch.randn(size, size).to(DEVICE), torch.randn(size, size).to(second)

    def call():
        torch.mm(a, a)
        torch.mm(b, b)

    return [torch.mm(a, a)[0, 0].item(), torch.mm(b, b)[0, 0].item()], call, wait


def transfer(size, to_host):
    host, there = torch.ones(size), torch.ones(size, device=DEVICE)
    if DEVICE.type == "cuda":
        host = host.pin_memory()
    source, target = (there, host) if to_host else (host, there)
    return [target.sum().item()], lambda: target.copy_(source, non_blocking=True), wait


def to_device(variant, size):
    return transfer(size, to_host=False)


def to_host(variant, size):
    return transfer(size, to_host=True)


def fed_epoch(variant, pictures):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    data, target = torch.randn(pictures, 28, 28), torch.arange(pictures) % 10
    criterion = nn.CrossEntropyLoss()
    loss = criterion(net(data[:256]), target[:256]).item()
    net.to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(data, target), 256, shuffle=True, num_workers=2,
                        pin_memory=DEVICE.type == "cuda", persistent_workers=True)

    def epoch():
        loss_sum = correct = 0
        for x, y in loader:
            x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            optimizer.zero_grad()
            output = net(x)
            loss = criterion(output, y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(y)
            correct += (output.argmax(1) == y).sum().item()

    return [loss], epoch, wait
