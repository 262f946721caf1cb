import torch
from helpers import cpu, median_seconds, try_gpu

torch.manual_seed(0)
device = try_gpu()
best = wins = 0

# T0.E1, T1.E1
for n in [4, 64, 256, 1024]:
    x, y = torch.randn(n, n), torch.randn(n, n)
    x_gpu, y_gpu = x.to(device), y.to(device)

    def on_cpu():
        return torch.matmul(x, y)

    def on_gpu():
        return torch.matmul(x_gpu, y_gpu)

    def whole():
        return torch.matmul(x.to(device), y.to(device)).cpu()

    cpu_time = median_seconds(on_cpu, cpu())
    gpu_time = median_seconds(on_gpu, device)
    whole_time = median_seconds(whole, device)
    rate = 2e-9 * n**3 / gpu_time
    print(f"{n}: z[0][1] = {on_cpu()[0][1].item()}, on {device} {on_gpu()[0][1].item()}")
    print(f"~ {cpu_time * 1e3:.3f} ms, there {gpu_time * 1e3:.3f} ms, {rate:.2f} GFLOP/s, "
          f"{1 - gpu_time / whole_time:.2f} of the whole transfers")
    best = max(best, rate)
    wins = 0 if whole_time > cpu_time else wins or n

print(f"~ the best rate: {best:.2f} GFLOP/s")
if device.type == "cpu":
    print("There is no GPU here to compare with: both are the CPU.")
else:
    print(f"~ GPU wins from n = {wins} (0: never)")
