from collections import namedtuple

import torch
from helpers import median_seconds, try_gpu

Row = namedtuple("Row", "device n seconds seconds_with_transfers rate")


def measure(device, n):
    torch.manual_seed(0)
    a, b = torch.rand(n, n), torch.rand(n, n)
    c, d = a.to(device), b.to(device)
    seconds = median_seconds(lambda: torch.matmul(c, d))
    with_transfers = median_seconds(lambda: torch.matmul(a.to(device), b.to(device)).cpu())
    return Row(device, n, seconds, max(seconds, with_transfers), 2 * n**3 / seconds)


device = try_gpu()
cpu_rows, gpu_rows = [], []
for n in [4, 16, 64, 256, 512, 1024]:
    cpu_rows.append(measure(torch.device("cpu"), n))
    if device.type != "cpu":
        gpu_rows.append(measure(device, n))

for rows in [cpu_rows, gpu_rows]:
    best = max((row.rate for row in rows), default=0)
    for row in rows:
        print(f"~ {'cpu' if row.device.type == 'cpu' else 'gpu'}, n = {row.n}: "
              f"{row.seconds * 1e3:.3f} ms, {row.rate / 1e9:.2f} GFLOP/s, "
              f"{100 * row.rate / best:.0f} % of the best, "
              f"transfers {100 * (1 - row.seconds / row.seconds_with_transfers):.0f} %")

wins = 0
for cpu_row, gpu_row in reversed(list(zip(cpu_rows, gpu_rows))):
    if gpu_row.seconds_with_transfers > cpu_row.seconds:
        break
    wins = gpu_row.n
print(f"~ the GPU wins from n = {wins} (0: never)")
if device.type == "cpu":
    print("There is no GPU here to compare with.")
