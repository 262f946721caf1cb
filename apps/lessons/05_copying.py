import torch
from helpers import num_gpus, try_gpu


def try_to_add(X, Y):
    try:
        X + Y
        print(f"The sum works: both tensors are in {X.device}")
    except RuntimeError as error:
        print(f"Tensor in {X.device} cannot add with tensor in {Y.device}")
        return str(error).splitlines()[0]


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())
Y = torch.rand(2, 3, device=try_gpu(1))

# T2.13
message = try_to_add(X, Y)
if X.device == Y.device:
    try_to_add(X, torch.ones(2, 3, device="meta"))

# T0.Z
Z = X.cuda(1) if num_gpus() > 1 else X
print(f"Original X device: {X.device}")
print(f"Copied Z device: {Z.device}")
if Z is X:
    print("Nothing was copied: Z is X.")

# T1.Z, T2.18
try:
    Z = X.cuda(1)
except (AssertionError, RuntimeError):  # a CPU build raises the former
    print(f"X.cuda(1) fails with {num_gpus()} GPUs")
    Z = X.to(try_gpu(1))
print(X)
print(Z)

result = Y + Z  # T0.YZ
if num_gpus() > 1:
    print(f"Y + Z = {result}")
print(Y + Z)  # T1.YZ, T2.19

print(Z.to(try_gpu(1)) is Z)  # T1.is, T2.22

print("Beyond the cells:")
if message:
    print(message)
copy = X.to(X.device, copy=True)
print(f"a copy where X is: {copy.equal(X)}, X itself: {copy is X}")
