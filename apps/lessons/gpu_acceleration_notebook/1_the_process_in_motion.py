import time
from statistics import median

import torch


def median_seconds(work, device, runs=9):
    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    seconds = []
    for _ in range(runs):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


torch.manual_seed(0)

# T3.to
tensor = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print("created on", tensor.device)
tensor = tensor.to('cuda') if torch.cuda.is_available() else tensor  # guard
print("moved to", tensor.device)
result = torch.matmul(tensor, tensor.t())
print("computed on", result.device)
retrieved = result.cpu()
print("retrieved to", retrieved.device)

# T3.auto
print(result)
print(result.sum().item())
print(result.flatten().tolist())
if result.sum() > 0:
    print("the sum is positive")

# Beyond the tutorial
print("Beyond the tutorial:")
device = result.device
try:
    sum = result + retrieved
    print("result + retrieved is on", sum.device)
except RuntimeError:
    print("result + retrieved fails: the operands are on different devices")
print("created with a device:", torch.ones(2, 3, device=device).device)

x = torch.randn(1024, 1024)
x_gpu = x.to(device)
pinned = x.pin_memory() if device.type == "cuda" else x


def copy_there():
    x.to(device, copy=True)


def copy_pinned():
    pinned.to(device, non_blocking=True, copy=True)


def copy_back():
    x_gpu.to("cpu", copy=True)


def multiply():
    torch.matmul(x_gpu, x_gpu)


def report(what, work):
    seconds = median_seconds(work, device)
    print(f"~ {what}: {seconds * 1e3:.3f} ms")


print(f"copied {x.nbytes} bytes, equal: {x_gpu.cpu().equal(x)}")
report("copy to the device", copy_there)
report("copy from pinned memory", copy_pinned)
report("copy back", copy_back)
report("product", multiply)
if device.type == "cpu":
    print("Without a GPU, these copies stay in CPU memory.")
