import time

import torch
from helpers import median_seconds, try_gpu


def launch_seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


device = try_gpu()
name = "cpu" if device.type == "cpu" else "gpu"
torch.manual_seed(0)
A, B = torch.rand(2000, 2000), torch.rand(2000, 2000)
C, D = A.to(device), B.to(device)


def on_cpu():
    torch.matmul(A, B)


def on_device():
    torch.matmul(C, D)


def show(where, how, seconds):
    flops = 2 * 2000**3
    print(f"~ {where}, {how}: {seconds * 1e3:.3f} ms, {flops / seconds / 1e9:.0f} GFLOP/s")
    return seconds


cpu_launch = show("cpu", "first run", launch_seconds(on_cpu))
launch = show(name, "first run, not waited for", launch_seconds(on_device))
print(f"~ the tutorial's speed-up: {cpu_launch / launch:.2f}")

cpu_median = show("cpu", "median after a warm-up", median_seconds(on_cpu))
median = show(name, "median after a warm-up, synchronized", median_seconds(on_device))
print(f"~ the honest speed-up: {cpu_median / median:.2f}")
if device.type == "cpu":
    print("There is no GPU here: both are the CPU.")
