import time
from statistics import median

import torch


def try_gpu(index=0):
    return torch.device(f"cuda:{index}" if index < torch.cuda.device_count() else "cpu")


def median_seconds(work, device=torch.device("cpu"), runs=9):
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
device = try_gpu()

# T1.E3
A = torch.rand(1000, 100, 100, device=device)
B = torch.rand(1000, 100, 100, device=device)
read = torch.zeros(1000)


def one_by_one():
    for i in range(1000):
        read[i] = torch.matmul(A[i], B[i]).norm().item()


log = torch.zeros(1000, device=device)
copied = torch.zeros(1000)


def kept():
    global copied
    for i in range(1000):
        log[i] = torch.matmul(A[i], B[i]).norm()
    copied = log.cpu()


one_by_one_time = median_seconds(one_by_one, device, 3)
kept_time = median_seconds(kept, device, 3)
print(f"equal norms: {read.equal(copied)}")
print(f"~ one by one: {one_by_one_time * 1e3:.2f} ms, kept on {device}: "
      f"{kept_time * 1e3:.2f} ms, ratio {one_by_one_time / kept_time:.2f}")
if device.type == "cpu":
    print("Without a GPU, there is nothing to copy: keeping the log saves nothing.")

# Beyond the tutorial
print("Beyond the tutorial:")


def batched():
    global norms
    norms = torch.bmm(A, B).norm(2, (1, 2)).cpu()


print(f"~ one batch: {median_seconds(batched, device, 3) * 1e3:.2f} ms")
print(f"last norm: {copied[999].item()}")
print(f"close norms: {norms.allclose(copied)}")
