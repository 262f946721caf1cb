import torch
from helpers import median_seconds, try_gpu

device = try_gpu()
X = torch.ones(2, 3, device=device)

print(X)
print(X.cpu())
print(X.sum().item())
for value in X.flatten().tolist():
    print(value, end=" ")
print()
print(X.cpu().equal(torch.ones(2, 3)))


def time(what, work):
    print(f"~ {what}: {median_seconds(work) * 1e6:.1f} us")


time("print(X)", lambda: repr(X))
time("print(X.cpu())", lambda: repr(X.cpu()))
time("item()", lambda: X[0][0].item())
time("tolist()", lambda: X.tolist())
time("cpu()", lambda: X.cpu())
