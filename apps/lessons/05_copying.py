import torch
from helpers import gpu, num_gpus, try_gpu


def beyond(X, Y):
    print("Beyond the cells:")
    there = torch.ones(2, 3, device="meta") if X.device == Y.device else Y
    try:
        X + there
    except RuntimeError as error:
        print(f"Tensor in {X.device} cannot add with tensor in {there.device}")
        if not there.is_meta:
            print(str(error).splitlines()[0])
    Z = X
    print(f"after Z = X, Z is X: {Z is X}")
    try:
        copy = X.to(gpu(1))
        print(f"X.cuda(1) is on {copy.device}")
    except (AssertionError, RuntimeError):  # a CPU build raises the former
        print(f"X.cuda(1) fails with {num_gpus()} GPUs")


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())
Y = torch.rand(2, 3, device=try_gpu(1))

# T2.13
try:
    X + Y
except RuntimeError:
    print(f"Tensor in {X.device} cannot add with tensor in {Y.device}")

# T0.Z
Z = X.to(gpu(1)) if num_gpus() > 1 else X
print(f"Original X device: {X.device}")
print(f"Copied Z device: {Z.device}")

# T1.Z, T2.18
Z = X.to(try_gpu(1))
print(X)
print(Z)

# T0.YZ
if num_gpus() > 1:
    result = Y + Z
    print(f"Y + Z = {result}")

# T1.YZ, T2.19
print(Y + Z)

# T1.is, T2.22
print(Z.to(try_gpu(1)) is Z)

beyond(X, Y)
