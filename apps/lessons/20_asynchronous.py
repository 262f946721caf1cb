import torch
from helpers import Stopwatch, count_flops, synchronize, try_gpu


def wait(device):
    synchronize(device)
    wait.count += 1


wait.count = 0
device = try_gpu()
torch.manual_seed(0)
x, y = torch.randn(2000, 1000, device=device), torch.randn(1000, 2000, device=device)
_, flops = count_flops(lambda: x @ y)
wait(device)

# T3.async
stopwatch = Stopwatch()
z = x @ y
returned = stopwatch.seconds()
wait(device)
finished = stopwatch.seconds()

print(f"~ the call returned after {returned * 1e3:.3f} ms")
print(f"~ the product was done after {finished * 1e3:.3f} ms")
print("the time of the call lies within that of the product:", returned <= finished)
print("waits, after the warm-up and after the call:", wait.count)
print("floating-point operations:", flops)
print("result:", z.shape, "on", z.device)
print(f"checksum: {z.cpu().cumsum(0, dtype=torch.float64).sum().item():.4e}")
if device.type == "cpu":
    print("On the CPU a call returns when its work is done.")
