import time
from statistics import median

import torch


def median_seconds(work, device, runs=9):
    def clock():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    work()
    seconds = []
    for _ in range(runs):
        start = clock()
        work()
        seconds.append(clock() - start)
    return median(seconds)

torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

# T0.batch
a = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)
b = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)


def small():
    return [a[i] + b[i] for i in range(1000)]


def large():
    return a + b


print(f"equal sums: {torch.stack(small()).equal(large())}")
print(f"~ 1000 small additions {median_seconds(small, device) * 1e3:.3f} ms, "
      f"one large {median_seconds(large, device) * 1e3:.3f} ms")

# T0.sync
X = torch.ones(2, 3, device=device)
print(X)
print(X.sum().item())


def add(print_every):
    Z = X
    for i in range(1, 101):
        Z = Z + 1
        if i % print_every == 0:
            repr(Z)


print(f"~ 100 additions: printed once {median_seconds(lambda: add(100), device) * 1e3:.3f} ms, "
      f"each time {median_seconds(lambda: add(1), device) * 1e3:.3f} ms")


# T0.memory
def show(when):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"{when}: {allocated} bytes of tensors, {reserved} reserved")


a = b = X = None
torch.cuda.empty_cache()
show("before")
X = torch.ones(2, 3, device=device)
show("with 2x3 numbers")
big = torch.empty(64, 1024, 1024, device=device)
show("with 256 MiB more")
X = big = None
show("without them")
torch.cuda.empty_cache()
show("with an empty cache")
if device.type == "cpu":
    print("All figures are 0, because there is no GPU.")

# Beyond the tutorial
print("Beyond the tutorial:")
try:
    torch.empty(2**50, dtype=torch.uint8, device=device)
except RuntimeError:
    print(f"{device} refuses a tensor of one pebibyte")
