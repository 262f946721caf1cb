import time

import torch
from helpers import median_seconds, synchronize, try_gpu
from torch import nn

device = try_gpu()
torch.manual_seed(0)
conv = nn.Conv2d(3, 64, 3, padding=1).to(device)
x = torch.rand(1, 3, 224, 224, device=device)
torch.set_grad_enabled(False)
print(conv(x).shape)

backend = torch._C._select_conv_backend(
    x, conv.weight, conv.bias, conv.stride, conv.padding, conv.dilation, False, (0, 0), 1, None)
print(backend.name if backend.name in ("Cudnn", "Mkldnn") else "another")
if device.type != "cpu":
    print("cuDNN", torch.backends.cudnn.version())


def show(what, seconds):
    print(f"~ {what}: {seconds * 1e3:.3f} ms")


on_cpu = x.cpu()
cpu_conv = nn.Conv2d(3, 64, 3, padding=1)
show("on the CPU", median_seconds(lambda: cpu_conv(on_cpu)))

for benchmark in [False, True]:
    torch.backends.cudnn.benchmark = benchmark
    print("benchmark =", torch.backends.cudnn.benchmark)
    if device.type == "cpu":
        continue
    synchronize(device)
    start = time.perf_counter()
    conv(x)
    synchronize(device)
    show("first call", time.perf_counter() - start)
    show("median", median_seconds(lambda: conv(x)))
