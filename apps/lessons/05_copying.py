import torch
from helpers import try_gpu


def try_to_add(X, Y):
    try:
        X + Y
        print(f"X + Y works: both are on {X.device}")
    except RuntimeError as error:
        print(f"X is on {X.device} and Y on {Y.device}: no sum")
        if not Y.is_meta:
            print(str(error).splitlines()[0])


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())
Y = torch.rand(2, 3, device=try_gpu(1))

try_to_add(X, Y)
try_to_add(X, torch.ones(2, 3, device="meta"))

Z = X.to(try_gpu(1))
print(X)
print(Z)
print(X.device, Z.device)
print(Y + Z)

print(Z.to(try_gpu(1)) is Z)
