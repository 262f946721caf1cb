import torch
from helpers import try_gpu

torch.manual_seed(0)

# T0.device, T1.x, T2.10
x = torch.tensor([1, 2, 3])
print(f"Tensor device: {x.device}")

# T0.X, T1.X, T2.11
X = torch.ones(2, 3, device=try_gpu())
print(f"Tensor X created on GPU: {X}")
if X.is_cpu:
    print(f"There is no GPU: X was created on {X.device}.")

# T0.Y, T2.12
Y = torch.rand(2, 3, device=try_gpu(1))
print(f"Tensor Y created on second GPU: {Y}")
if Y.is_cpu:
    print(f"There is no second GPU: Y was created on {Y.device}.")

# T1.Y
Y = torch.randn(2, 3, device=try_gpu(1))
print(Y)
