import torch


def try_gpu(i=0):
    if torch.cuda.device_count() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')


def show(when):
    print(f"{when}: {torch.cuda.memory_allocated()} bytes of tensors on the GPU, "
          f"{torch.cuda.memory_reserved()} reserved")


torch.manual_seed(0)

# T1.x
x = torch.tensor([1, 2, 3])
print(x.device)

# T1.X
X = torch.ones(2, 3, device=try_gpu())
print(X)

# T1.memory
show("with X")
big = torch.empty(64, 1024, 1024, device=try_gpu())
show("with big")
big = None
show("without big")
torch.cuda.empty_cache()
show("with an empty cache")

# T1.Y
Y = torch.randn(2, 3, device=try_gpu(1))
print(Y)

# T1.XY
try:
    X + Y
    print(f"X and Y are both on {X.device}, so X + Y works")
except RuntimeError:
    print(f"X is on {X.device}, Y is on {Y.device}, so X + Y fails")

# T1.Z
Z = X.cuda(1) if torch.cuda.device_count() > 1 else X.to(try_gpu(1))  # guard
print(X)
print(Z)

# T1.YZ
print(Y + Z)

# T1.is
print(Z.cuda(1) is Z if torch.cuda.device_count() > 1 else Z.to(try_gpu(1)) is Z)  # guard

# Beyond the tutorial
print("Beyond the tutorial:")
try:
    X + torch.ones(2, 3, device="meta")
except RuntimeError:
    print(f"X is on {X.device}, so adding a tensor on meta fails")
try:
    torch.empty(2**48, device=try_gpu())
except RuntimeError:
    print(f"a pebibyte does not fit on {try_gpu()}")
Z = X
print(f"after Z = X, Z is X: {Z is X}")
