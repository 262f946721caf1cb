import time
from statistics import median

import torch
from helpers import count_flops, synchronize


def wait(device):
    synchronize(device)
    wait.count += 1


def measure(name, x, y, of_cell):
    wait.count = 0
    z, flops = count_flops(lambda: torch.matmul(x, y))
    wait(x.device)

    within, seconds = True, []
    for _ in range(3):
        start_time = time.perf_counter()
        z = torch.matmul(x, y)
        call = time.perf_counter() - start_time
        wait(z.device)
        seconds.append(time.perf_counter() - start_time)
        within &= call <= seconds[-1]
    close = torch.allclose(z, of_cell, 1e-5, 1e-3)
    print(f"{name}: the calls' times lie within the products': {within}, "
          f"close to the cell's: {close}")
    print(f"{name}: waits: {wait.count}")
    print(f"{name}: floating-point operations: {flops}")
    checksum = z.cpu().cumsum(0, dtype=torch.float64).sum().item()
    print(f"{name}: result on {z.device}, checksum {checksum:.4e}")
    product = median(seconds)
    print(f"~ {name}: {product * 1e3:.3f} ms, {flops / product / 1e9:.0f} GFLOP/s")
    return product


wait.count = 0
torch.manual_seed(0)  # T3.2
x, y = torch.randn(2000, 2000), torch.randn(2000, 2000)
start_time = time.perf_counter()
z_cpu = torch.matmul(x, y)
cpu_time = time.perf_counter() - start_time
print(f"~ CPU Time: {cpu_time:.6f} seconds")
if torch.cuda.is_available():
    x_gpu, y_gpu = x.to("cuda"), y.to("cuda")
    start_time = time.perf_counter()
    z_gpu = torch.matmul(x_gpu, y_gpu)
    gpu_time = time.perf_counter() - start_time
    print(f"~ GPU Time: {gpu_time:.6f} seconds")
    speedup = cpu_time / gpu_time
    print(f"~ Speedup: GPU is {speedup:.2f} times faster than CPU!")
    print("The GPU's time is that of asking it: nobody waited for the product.")
else:
    print("GPU not available, computations performed on CPU only.")
print("Beyond the cells:")
print("waits in the cell:", wait.count)
cpu = measure("CPU", x, y, z_cpu)
if torch.cuda.is_available():
    gpu = measure("GPU", x_gpu, y_gpu, z_gpu)
    print(f"~ honest speed-up: {cpu / gpu:.2f}")
