import time
from statistics import median

import torch


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median_seconds(work, device, runs):
    work()
    seconds = []
    for _ in range(runs):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


torch.manual_seed(0)

# T3.2
matrix_size = 2000
x = torch.randn(matrix_size, matrix_size)
y = torch.randn(matrix_size, matrix_size)
start_time = time.time()
z_cpu = torch.matmul(x, y)
cpu_time = time.time() - start_time
print(f"~ CPU Time: {cpu_time:.4f} seconds")
if torch.cuda.is_available():
    device = torch.device("cuda")
    x_gpu = x.to(device)
    y_gpu = y.to(device)
    start_time = time.time()
    z_gpu = torch.matmul(x_gpu, y_gpu)
    gpu_time = time.time() - start_time
    print(f"~ GPU Time: {gpu_time:.4f} seconds")
    speedup = cpu_time / gpu_time
    print(f"~ Speedup: GPU is {speedup:.2f} times faster than CPU!")
else:
    print("GPU not available, computations performed on CPU only.")

# Beyond the tutorial
print("Beyond the tutorial:")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x_gpu = x.to(device)
y_gpu = y.to(device)
torch.matmul(x_gpu, y_gpu)
synchronize(device)

start = time.perf_counter()
z_gpu = torch.matmul(x_gpu, y_gpu)
returned = time.perf_counter() - start
synchronize(device)
finished = time.perf_counter() - start
print(f"~ the launch returned after {returned * 1e3:.3f} ms: speedup {cpu_time / returned:.2f}")
print(f"~ the product finished after {finished * 1e3:.3f} ms: "
      f"speedup {cpu_time / finished:.2f}")


def gflops(a, b):
    def work():
        torch.matmul(a, b)

    operations = 2 * matrix_size**3
    return operations / median_seconds(work, a.device, runs=3) / 1e9


print("close to the CPU's:", z_gpu.cpu().allclose(z_cpu, 1e-5, 1e-2))
cpu_rate, gpu_rate = gflops(x, y), gflops(x_gpu, y_gpu)
print(f"~ medians of finished products: CPU {cpu_rate:.0f} GFLOP/s, "
      f"{x_gpu.device} {gpu_rate:.0f} GFLOP/s, speedup {gpu_rate / cpu_rate:.2f}")
if device.type == "cpu":
    print("Without a GPU, both products run on the CPU.")
