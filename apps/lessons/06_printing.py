import torch
from helpers import median_seconds, try_gpu


def beyond(X):
    print("Beyond the cells:")
    print(f"equal values: {torch.tensor(X.tolist()).equal(X.cpu())}")
    print(f"~ print(X) {median_seconds(lambda: repr(X)) * 1e6:.1f} us, "
          f"print(X.cpu()) {median_seconds(lambda: repr(X.cpu())) * 1e6:.1f} us, "
          f"item() {median_seconds(lambda: X[0][0].item()) * 1e6:.1f} us, "
          f"tolist() {median_seconds(lambda: X.tolist()) * 1e6:.1f} us, "
          f"cpu() {median_seconds(lambda: X.cpu()) * 1e6:.1f} us")


X = torch.ones(2, 3, device=try_gpu())

# T0.sync, T1.print, T3.auto
print(X)
print(X.sum().item())
for value in X.flatten().tolist():
    print(value, end=" ")
print()
print(X.cpu())

beyond(X)
