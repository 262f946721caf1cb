import torch


def gpu(i=0):
    return torch.device(f"cuda:{i}")


def num_gpus():
    return torch.cuda.device_count()


def try_gpu(i=0):
    return gpu(i) if num_gpus() >= i + 1 else torch.device("cpu")


torch.manual_seed(0)

# T0.device
x = torch.tensor([1, 2, 3])
print(f"Tensor device: {x.device}")

# T0.X
X = torch.ones(2, 3, device=try_gpu())
print(f"Tensor X created on GPU: {X}")

# T0.Y
Y = torch.rand(2, 3, device=try_gpu(1))
print(f"Tensor Y created on second GPU: {Y}")

# T0.Z
Z = X.cuda(1) if num_gpus() > 1 else X
print(f"Original X device: {X.device if hasattr(X, 'device') else X.ctx}")
print(f"Copied Z device: {Z.device if hasattr(Z, 'device') else Z.ctx}")

# T0.YZ
if num_gpus() > 1:
    result = Y + Z
    print(f"Y + Z = {result}")

# T0.is
same = X.to(X.device)
print(f"to its own device, the original: {same is X}")
clone = X.clone()
print(f"clone(), the original: {clone is X}")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"with {num_gpus()} GPUs, X is on {X.device} and Y on {Y.device}")
print(f"Z is X: {Z is X}")
try:
    sum = X + Y
    print(f"X + Y is on {sum.device}")
except RuntimeError:
    print("X + Y fails: they are on different devices")
