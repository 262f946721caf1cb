import torch
from helpers import median_seconds, try_gpu

device = try_gpu()
torch.manual_seed(0)
a = torch.rand(1000, 1000, device=device)
b = torch.rand(1000, 1000, device=device)


def add_rows():
    return [a[i] + b[i] for i in range(1000)]


print("equal sums:", torch.stack(add_rows()).equal(a + b))
print(f"~ 1000 small additions: {median_seconds(add_rows) * 1e3:.3f} ms")
print(f"~ one large addition: {median_seconds(lambda: a + b) * 1e3:.3f} ms")


def copy(x):
    return x.to("cpu", copy=True)


def copy_rows():
    return [copy(a[i]) for i in range(1000)]


print("equal copies:", torch.stack(copy_rows()).equal(copy(a)))
print(f"~ 1000 small copies: {median_seconds(copy_rows) * 1e3:.3f} ms")
print(f"~ one large copy: {median_seconds(lambda: copy(a)) * 1e3:.3f} ms")
