import torch
from torch import nn


def try_gpu():
    return torch.device("cuda:0" if torch.cuda.device_count() >= 1 else "cpu")


torch.manual_seed(0)
X = torch.ones(2, 3, device=try_gpu())

# T0.net
net = nn.Sequential(nn.LazyLinear(1))
net = net.to(device=try_gpu())

# T0.netX
output = net(X)
print(f"Network output: {output}")

# T0.where
print(f"Weight device: {net[0].weight.data.device}")

# Beyond the tutorial
print("Beyond the tutorial:")
print(net)
for parameter in net.parameters():
    print(f"{parameter.shape} on {parameter.device}")
print(f"equal rows: {output[0].equal(output[1])}")
