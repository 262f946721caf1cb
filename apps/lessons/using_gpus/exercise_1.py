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

# T0.E1
wins_from = 0
for n in [4, 64, 256, 1024]:
    x, y = torch.randn(n, n), torch.randn(n, n)
    x_gpu, y_gpu = x.to(device), y.to(device)

    def on_cpu():
        return torch.matmul(x, y)

    def on_gpu():
        return torch.matmul(x_gpu, y_gpu)

    def with_copies():
        return torch.matmul(x.to(device), y.to(device)).cpu()

    cpu_time = median_seconds(on_cpu)
    gpu_time = median_seconds(on_gpu, device)
    whole_time = median_seconds(with_copies, device)
    print(f"n = {n}: z[0][1] = {on_cpu()[0][1].item()} on the CPU, "
          f"{on_gpu()[0][1].item()} on {device}")
    print(f"~ CPU {cpu_time * 1e3:.3f} ms, {device} {gpu_time * 1e3:.3f} ms, "
          f"with copies {whole_time * 1e3:.3f} ms")
    print(f"~ {2e-9 * n**3 / gpu_time:.2f} GFLOP/s, "
          f"copies take {100 * (1 - gpu_time / whole_time):.0f}% of the total time")
    if whole_time > cpu_time:
        wins_from = 0
    elif wins_from == 0:
        wins_from = n
if device.type == "cpu":
    print("There is no GPU here, so the CPU is compared with itself.")
else:
    print(f"~ with copies, the GPU wins from n = {wins_from} (0: never)")
