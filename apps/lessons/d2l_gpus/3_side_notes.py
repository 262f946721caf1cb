import time
from statistics import median

import torch


def synchronize():
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def ms(work):
    work()
    seconds = []
    for _ in range(9):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds) * 1e3


torch.manual_seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

# T1.slow
x = torch.randn(2048, 1024)
x_gpu = x.to(device)
x_cpu = x_gpu.cpu()
print(f"{x.device} to {x_gpu.device} and back to {x_cpu.device}, {x.nbytes} bytes each way")
print(f"same values: {x_cpu.equal(x)}")
print(f"~ copy to the device: {ms(lambda: x.to(device, copy=True)):.3f} ms, "
      f"copy back: {ms(lambda: x_gpu.to('cpu', copy=True)):.3f} ms")
print(f"~ matrix product on the device: {ms(lambda: torch.matmul(x_gpu, x_gpu.t())):.3f} ms")

# T1.small
a = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)
b = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)


def small():
    return [a[i] + b[i] for i in range(1000)]


def large():
    return a + b


print(f"same sums: {torch.stack(small()).equal(large())}")
print(f"~ 1000 small additions: {ms(small):.3f} ms, one large addition: {ms(large):.3f} ms")

# T1.print
X = torch.ones(2, 3, device=device)
print(X)
print(X.sum().item())
print(X.flatten().tolist())
print(f"~ printing: {ms(lambda: repr(X)):.4f} ms, item(): {ms(lambda: X[0][0].item()):.4f} ms, "
      f"cpu(): {ms(lambda: X.cpu()):.4f} ms")

# Beyond the tutorial
print("Beyond the tutorial:")


def copy_rows():
    for i in range(1000):
        a[i].to("cpu", copy=True)


print(f"~ 1000 small copies: {ms(copy_rows):.3f} ms, "
      f"one large copy: {ms(lambda: a.to('cpu', copy=True)):.3f} ms")
if device.type == "cuda":
    pinned = x.pin_memory()
    print(f"~ copy from pinned memory: {ms(lambda: pinned.to(device, non_blocking=True)):.3f} ms")
else:
    print("without a GPU, every copy stays in main memory")
