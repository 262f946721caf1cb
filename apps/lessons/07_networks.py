import torch
from helpers import try_gpu
from torch import nn

torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

net = nn.Sequential(nn.LazyLinear(1))
net.to(try_gpu())
print(net)
print(net(X))
print(net)
print(net[0].weight.data.device)

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 1))
net.to(try_gpu())
print(net)
for parameter in net.parameters():
    print(parameter.shape)
print(net(X))
print(net[0].weight.data.device)
