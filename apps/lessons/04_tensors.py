import torch
from helpers import num_gpus, try_gpu

torch.manual_seed(0)

x = torch.tensor([1, 2, 3])
print(x.device)

X = torch.ones(2, 3, device=try_gpu())
print(X)

Y = torch.rand(2, 3, device=try_gpu(1))
print(Y)
Y = torch.randn(2, 3, device=try_gpu(1))
print(Y)
if num_gpus() < 2:
    print("With two GPUs X and Y would lie on two of them.")
