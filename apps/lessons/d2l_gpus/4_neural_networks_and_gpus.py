import torch
from torch import nn


def try_gpu(i=0):
    if torch.cuda.device_count() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

# T1.net
net = nn.Sequential(nn.Linear(3, 1))
net = net.to(device=try_gpu())

# T1.netX
print(net(X))

# T1.where
print(net[0].weight.data.device)

# Beyond the tutorial
print("Beyond the tutorial:")
for parameter in net.parameters():
    print(f"{parameter.shape} on {parameter.device}")
net.to(torch.double)
X.to(torch.double)
print(f"without an assignment, to changes the network: {next(net.parameters()).dtype}")
print(f"but not the tensor: {X.dtype}")
