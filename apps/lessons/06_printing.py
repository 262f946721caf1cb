import torch
from helpers import calls_of, median_seconds, try_gpu, waits_of

device = try_gpu()
X = torch.ones(2, 3, device=device)

# T0.sync, T1.print, T3.auto
print(X)
print(X.cpu())
print(X.sum().item())
for value in X.flatten().tolist():
    print(value, end=" ")
print()
print(X.cpu().equal(torch.ones(2, 3)))

print("Beyond the cells:")


def tell(what, work):
    reads, copies = calls_of("aten::_local_scalar_dense", work), calls_of("aten::_to_copy", work)
    print(f"{what}: host reads {reads}, copies {copies}")


tell("item() of each", lambda: [X[i // 3][i % 3].item() for i in range(6)])
tell("tolist()", lambda: X.tolist())
tell("cpu()", lambda: X.cpu())


def time():
    print(f"~ print(X) {median_seconds(lambda: repr(X)) * 1e6:.1f} us, "
          f"print(X.cpu()) {median_seconds(lambda: repr(X.cpu())) * 1e6:.1f} us, "
          f"item() {median_seconds(lambda: X[0][0].item()) * 1e6:.1f} us, "
          f"cpu() {median_seconds(lambda: X.cpu()) * 1e6:.1f} us")


print("waits of the clock:", waits_of(time))
