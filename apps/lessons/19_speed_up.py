import time

import torch
from helpers import cpu, median_seconds, try_gpu


def beyond(x, y, z_cpu):
    device = try_gpu()
    x_gpu, y_gpu = x.to(device), y.to(device)

    def on_cpu():
        return torch.matmul(x, y)

    def on_gpu():
        return torch.matmul(x_gpu, y_gpu)

    cpu_time = median_seconds(on_cpu, cpu(), runs=3)
    gpu_time = median_seconds(on_gpu, device, runs=3)
    gflop = 2 * x.size(0) * x.size(1) * y.size(1) / 1e9
    print(f"equal to the cell's: {on_cpu().equal(z_cpu)}, close on {device}: "
          f"{on_gpu().cpu().allclose(z_cpu, 1e-5, 1e-2)}")
    print(f"~ waited for: CPU {gflop / cpu_time:.0f} GFLOP/s, "
          f"{device} {gflop / gpu_time:.0f} GFLOP/s, speedup {cpu_time / gpu_time:.2f}")


torch.manual_seed(0)

# T3.2
matrix_size = 2000
x = torch.randn(matrix_size, matrix_size)
y = torch.randn(matrix_size, matrix_size)
start_time = time.time()
z_cpu = torch.matmul(x, y)
cpu_time = time.time() - start_time
print(f"~ CPU Time: {cpu_time:.6f} seconds")
if torch.cuda.is_available():
    device = torch.device("cuda")
    x_gpu = x.to(device)
    y_gpu = y.to(device)
    start_time = time.time()
    z_gpu = torch.matmul(x_gpu, y_gpu)
    gpu_time = time.time() - start_time
    print(f"~ GPU Time: {gpu_time:.6f} seconds")
    speedup = cpu_time / gpu_time
    print(f"~ Speedup: GPU is {speedup:.2f} times faster than CPU!")
else:
    print("GPU not available, computations performed on CPU only.")

beyond(x, y, z_cpu)
