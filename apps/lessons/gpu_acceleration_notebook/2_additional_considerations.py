import time

import torch


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(1000, 1000).to(device)
y = torch.randn(1000, 1000).to(device)
z = torch.matmul(x, y)

# T3.async
synchronize(device)
start_time = time.time()
for i in range(10):
    z = torch.matmul(x, y)
queued = time.time() - start_time
synchronize(device)
finished = time.time() - start_time
print("10 products of", z.shape, "on", z.device)
print(f"~ queued after {queued * 1e3:.3f} ms, finished after {finished * 1e3:.3f} ms")


# T3.memory
def show(when):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"{when}: {allocated} bytes of tensors, {reserved} bytes reserved")


show("with x, y, and z")
big = torch.empty(64, 1024, 1024, device=device)
show("with big")
big = None
show("without big")
torch.cuda.empty_cache()
show("with an empty cache")

# Beyond the tutorial
print("Beyond the tutorial:")
try:
    torch.empty(2**50, dtype=torch.uint8, device=device)
except RuntimeError:
    print(f"allocating a pebibyte on {device.type} fails, and the program continues")
if device.type == "cpu":
    print("On the CPU, a call returns only after its work is finished.")
    print("Without a GPU, no GPU memory is allocated, and all figures are 0.")
