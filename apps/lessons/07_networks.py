import torch
from helpers import try_gpu
from torch import nn


def beyond(X, net):
    print("Beyond the cells:")
    for parameter in net.parameters():
        print(parameter.shape)
    lazy = nn.Sequential(nn.LazyLinear(1))
    lazy.to(try_gpu())
    output = lazy(X)
    print(lazy)
    print(f"two equal rows: {output[0].equal(output[1])}")
    net.to(torch.double)
    X.to(torch.double)
    print(f"the net: {next(net.parameters()).dtype}, X: {X.dtype}")


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

# T0.net, T2.44
net = nn.Sequential(nn.LazyLinear(1))
net.to(try_gpu())
print(net)

# T0.netX, T2.45
output = net(X)
print(f"Network output: {output}")

# T0.where, T2.46
print(f"Weight device: {net[0].weight.data.device}")

# T1.net
net = nn.Sequential(nn.Linear(3, 1))
net.to(try_gpu())
print(net)

# T1.netX
print(net(X))

# T1.where
print(net[0].weight.data.device)

beyond(X, net)
