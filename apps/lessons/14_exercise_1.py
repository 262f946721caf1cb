from collections import namedtuple
from statistics import median

import torch
from helpers import Stopwatch, count_flops, cpu, synchronize, try_gpu

Row = namedtuple("Row", "seconds seconds_with_transfers rate")


def wait(device):
    synchronize(device)
    wait.count += 1


def measure(device, n):
    torch.manual_seed(0)
    a, b = torch.randn(n, n), torch.randn(n, n)
    wait.count = 0
    _, flops = count_flops(lambda: torch.matmul(a.to(device), b.to(device)).cpu())

    within, product, whole = True, [], []
    for _ in range(9):
        around = Stopwatch()
        c, d = a.to(device), b.to(device)
        wait(device)
        inside = Stopwatch()
        z = torch.matmul(c, d)
        wait(device)
        product.append(inside.seconds())
        z.cpu()
        whole.append(around.seconds())
        within &= product[-1] <= whole[-1]
    print(f"n = {n}, {z.device}")
    print(f"  the product's time lies within that with transfers: {within}")
    print(f"  waits {wait.count}, floating-point operations {flops}")
    print(f"  checksum {z.cpu().cumsum(0, dtype=torch.float64).sum().item():.4e}")
    print(f"~ {median(product) * 1e3:.3f} ms, {flops / median(product) / 1e9:.2f} GFLOP/s, "
          f"transfers {1 - median(product) / median(whole):.2f} of the whole")
    return Row(median(product), median(whole), flops / median(product))


device = try_gpu()
wins = 0
best_on_cpu, best_on_gpu = 0, 0
for n in [4, 64, 256, 1024]:  # T0.E1, T1.E1
    on_cpu = measure(cpu(), n)
    best_on_cpu = max(best_on_cpu, on_cpu.rate)
    if device.type == "cpu":
        continue
    on_gpu = measure(device, n)
    best_on_gpu = max(best_on_gpu, on_gpu.rate)
    wins = 0 if on_gpu.seconds_with_transfers > on_cpu.seconds else wins or n

print("A small product takes the time of its call, a large one that of its work.")
print(f"~ the best on the CPU: {best_on_cpu / 1e9:.2f} GFLOP/s")
if device.type == "cpu":
    print("There is no GPU here to compare with.")
else:
    print(f"~ the best on the GPU: {best_on_gpu / 1e9:.2f} GFLOP/s")
    print(f"~ the GPU wins from n = {wins} (0: never)")
