import torch
from helpers import Stopwatch, synchronize, try_gpu

device = try_gpu()
torch.manual_seed(0)
x = torch.randn(2000, 1000, device=device)
y = torch.randn(1000, 2000, device=device)
x @ y
synchronize(device)

# T3.async
stopwatch = Stopwatch()
z = x @ y
returned = stopwatch.seconds()
synchronize(device)
finished = stopwatch.seconds()

print("z of", z.shape, "on", z.device)
print("z[0][1] =", z[0][1].item())
print(f"~ the call returned after {returned * 1e3:.3f} ms, the product was done after "
      f"{finished * 1e3:.3f} ms")
if device.type == "cpu":
    print("On the CPU a call returns when its work is done.")
