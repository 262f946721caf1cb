import time

import torch
from helpers import synchronize, try_gpu

device = try_gpu()
torch.manual_seed(0)
x, y = torch.rand(2000, 2000, device=device), torch.rand(2000, 2000, device=device)
torch.matmul(x, y)
synchronize(device)

start = time.perf_counter()
z = x @ y
returned = time.perf_counter()
synchronize(device)
finished = time.perf_counter()

print(f"~ the call returned after {(returned - start) * 1e3:.3f} ms")
print(f"~ the product was done after {(finished - start) * 1e3:.3f} ms")
if device.type == "cpu":
    print("On the CPU a call returns when its work is done.")
