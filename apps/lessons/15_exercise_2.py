import io

import torch
from helpers import try_gpu
from torch import nn


def beyond(net):
    try:
        net.weight.fill_(1)
    except RuntimeError as error:
        print(error)

    file = io.BytesIO()
    torch.save(net.weight.data, file)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")
    print(loaded)


torch.manual_seed(0)
net = nn.Linear(3, 2).to(try_gpu())

# T0.E2, T1.E2
print(net.weight.data)
print(net.weight.data[0, 1].item())
with torch.no_grad():
    net.weight.fill_(1)
    net.weight[0, 1] = 5
    net.bias.copy_(torch.tensor([1.0, 2.0]))
print(net.weight.data)
print(net.bias.data)
print(net.bias.device == try_gpu())

beyond(net)
