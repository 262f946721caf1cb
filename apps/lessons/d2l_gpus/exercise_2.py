import io

import torch
from torch import nn


def try_gpu(index=0):
    return torch.device(f"cuda:{index}" if index < torch.cuda.device_count() else "cpu")


torch.manual_seed(0)
net = nn.Linear(3, 2)
net.to(try_gpu())

# T1.E2
print(net.weight.data)
print(net.weight.data[0][1].item())
before = net.weight.data.cpu()
with torch.no_grad():
    net.weight.fill_(1)
    net.weight[0][1] = 5
    net.bias.copy_(torch.tensor([1.0, 2.0]))
print(net.weight.data)
print(net.bias.data)
print(f"the bias is still there: {net.bias.device == try_gpu()}")
print(f"cpu() before writing: {before}")

weight = net.weight
net.to("cpu")
print(f"after to(): {weight.device}, the same parameter: {weight is net.weight}")

# Beyond the tutorial
print("Beyond the tutorial:")
try:
    net.weight.fill_(1)
except RuntimeError as error:
    print(error)
net.to(try_gpu())
file = io.BytesIO()
torch.save(net.weight.data, file)
file.seek(0)
loaded = torch.load(file, map_location="cpu")
print(f"saved on {net.weight.device}, loaded on {loaded.device}: {loaded}")
