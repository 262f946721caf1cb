import time
from statistics import median

import torch
from torch import nn


def median_seconds(work, device, runs=9):
    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    seconds = []
    for _ in range(runs):
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


# T4.cuda
print(f"CUDA can be used: {torch.cuda.is_available()}")
for i in range(torch.cuda.device_count()):
    card = torch.cuda.get_device_properties(i)
    print(f"{card.name}, {card.multi_processor_count} multiprocessors")
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
for count in [1, 1000, 1000000]:
    x = torch.arange(count, device=device)
    squares = x * x
    print(f"squares computed by one call on {squares.device}: "
          f"{squares.numel()}, sum {squares.sum().item()}")
    seconds = median_seconds(lambda: x * x, device)
    print(f"~ call time: {seconds * 1e6:.1f} us")


# T4.why
def step_seconds(width, device):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(100, width, device=device)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()

    return median_seconds(step, device)


for width in [16, 128, 1024]:
    cpu = step_seconds(width, torch.device("cpu"))
    print(f"~ step at width {width} on the CPU: {cpu * 1e3:.3f} ms")
    if not torch.cuda.is_available():
        continue
    gpu = step_seconds(width, torch.device("cuda:0"))
    print(f"~ step at width {width} on the GPU: {gpu * 1e3:.3f} ms, {cpu / gpu:.1f} times as fast")
if not torch.cuda.is_available():
    print("needs a GPU for comparison")
