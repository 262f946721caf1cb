import time
from statistics import median

import torch
from torch import nn


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_seconds(work):
    work()
    seconds = []
    for _ in range(9):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
X = torch.randn(100, 64, 3, device=device)
y = X.sum(2, keepdim=True)
net = nn.Linear(3, 1)
net.to(device)


# T1.log
def read_each():
    read = torch.zeros(100)
    for i in range(100):
        loss = nn.functional.mse_loss(net(X[i]), y[i])
        read[i] = loss.item()
    return read


log = torch.zeros(100, device=device)


def keep_log():
    for i in range(100):
        loss = nn.functional.mse_loss(net(X[i]), y[i])
        log[i] = loss.detach()
    return log.cpu()


print(f"equal logs: {read_each().equal(keep_log())}")
print(f"~ reading each loss: {median_seconds(read_each) * 1e3:.3f} ms")
print(f"~ keeping a log on the device: {median_seconds(keep_log) * 1e3:.3f} ms")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"with detach(), the log requires a gradient: {log.requires_grad}")
log[99] = nn.functional.mse_loss(net(X[99]), y[99])
print(f"without detach(): {log.requires_grad}")
