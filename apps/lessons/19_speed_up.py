import time

import torch
from helpers import cpu, gpu, median_seconds, num_gpus


def beyond(x, y, z_cpu):
    def measure(device):
        a, b = x.to(device), y.to(device)

        def multiply():
            return torch.matmul(a, b)

        seconds = median_seconds(multiply, device, runs=3)
        close = torch.allclose(multiply().cpu(), z_cpu, rtol=1e-5, atol=1e-2)
        print(f"waited for on {device}: close to the cell's {close}")
        print(f"~ {seconds:.6f} seconds, {2e-9 * x.size(0) * x.size(1) * y.size(1) / seconds:.0f} GFLOP/s")
        return seconds

    print("z_cpu[0][1] =", z_cpu[0][1].item())
    cpu_time = measure(cpu())
    if num_gpus() > 0:
        print(f"~ GPU is {cpu_time / measure(gpu()):.2f} times faster")


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
