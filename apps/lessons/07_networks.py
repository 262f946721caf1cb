import torch
from helpers import try_gpu
from torch import nn

torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

# T0.net, T2.44
net = nn.Sequential(nn.LazyLinear(1))
net.to(try_gpu())
print(net)

output = net(X)  # T0.netX, T2.45
print(f"Network output: {output}")

print(f"Weight device: {net[0].weight.data.device}")  # T0.where, T2.46
lazy = net

# T1.net
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 1))
net.to(try_gpu())
print(net)
print(net(X))  # T1.netX
print(net[0].weight.data.device)  # T1.where

print("Beyond the cells:")
print(lazy)
for parameter in net.parameters():
    print(parameter.shape)
print("two equal rows:", output[0].equal(output[1]))
print("the same numbers, lazy or not:", output.equal(net(X)))
