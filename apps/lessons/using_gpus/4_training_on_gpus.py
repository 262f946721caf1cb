import time
from statistics import median

import torch


def median_seconds(work, device, runs=9):
    def clock():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    work()
    seconds = []
    for _ in range(runs):
        start = clock()
        work()
        seconds.append(clock() - start)
    return median(seconds)

torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

# T0.copy
x = torch.randn(2048, 1024)
x_gpu = x.to(device)
x_cpu = x_gpu.cpu()
print(f"{x.device} to {x_gpu.device} and back to {x_cpu.device}, {x.nbytes} bytes each way")
print(f"values kept: {x_cpu.equal(x)}")


def to_gpu():
    return x.to(device, copy=True)


def to_cpu():
    return x_gpu.to("cpu", copy=True)


def multiply():
    return torch.matmul(x_gpu, x_gpu.t())


print(f"product: {multiply().shape}")
print(f"~ to {device} {median_seconds(to_gpu, device) * 1e3:.3f} ms, "
      f"back {median_seconds(to_cpu, device) * 1e3:.3f} ms, "
      f"the product {median_seconds(multiply, device) * 1e3:.3f} ms")
if device.type == "cpu":
    print("Without a GPU, nothing is transferred: these are copies in memory.")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"created there: {torch.ones(2, 3, device=device).device}")
if device.type == "cuda":
    pinned = x.pin_memory()

    def from_pinned():
        return pinned.to(device, non_blocking=True)

    print(f"values kept: {from_pinned().cpu().equal(x)}")
    print(f"~ from pinned memory {median_seconds(from_pinned, device) * 1e3:.3f} ms")
