import torch
from helpers import num_gpus, try_gpu


def beyond(X, Y):
    print("Beyond the cells:")
    print(f"with {num_gpus()} GPUs X was created on {X.device}, Y on {Y.device}")


torch.manual_seed(0)

# T0.device, T1.x, T2.10
x = torch.tensor([1, 2, 3])
print(f"Tensor device: {x.device}")

# T0.X, T1.X, T2.11
X = torch.ones(2, 3, device=try_gpu())
print(f"Tensor X created on GPU: {X}")

# T0.Y, T2.12
Y = torch.rand(2, 3, device=try_gpu(1))
print(f"Tensor Y created on second GPU: {Y}")

# T1.Y
Y = torch.randn(2, 3, device=try_gpu(1))
print(Y)

beyond(X, Y)
