import torch
from torch import nn


def try_gpu(i=0):
    if torch.cuda.device_count() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

# T2.44
net = nn.Sequential(nn.LazyLinear(1))
print(net.to(device=try_gpu()))

# T2.45
print(net(X))

# T2.46
print(net[0].weight.data.device)

# Beyond the tutorial
print("Beyond the tutorial:")
print(net)
output = net(X)
print(f"two equal rows: {output[0].equal(output[1])}")
