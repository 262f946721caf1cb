import time
from statistics import median

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


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


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 2).to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3)
labels = torch.randint(0, 2, (100,))
dataloader = DataLoader(TensorDataset(inputs.to(device), labels.to(device)), batch_size=25)

# T4.batch
inputs, labels = inputs.to(device), labels.to(device)

# T4.same
tensor1 = torch.randn(5, 5).to(device)
tensor2 = torch.randn(5, 5).to(device)
result = tensor1 + tensor2

# T4.amp
from torch.cuda.amp import autocast, GradScaler

scaler = GradScaler()
for data, target in dataloader:
    optimizer.zero_grad()
    with autocast():
        output = model(data)
        loss = loss_fn(output, target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

# T4.amp-speed
width = 256
if torch.cuda.is_available():
    width = 32 * torch.cuda.get_device_properties(0).multi_processor_count
wide = nn.Linear(width, width).to(device)
sgd = torch.optim.SGD(wide.parameters(), lr=0.01)
x = torch.randn(width, width, device=device)
for mixed in [False, True]:
    def step():
        sgd.zero_grad()
        with torch.autocast(device.type, enabled=mixed):
            loss = wide(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()

    print(f"~ step at width {width} in {'mixed precision' if mixed else 'float32'}: "
          f"{median_seconds(step, device) * 1e3:.2f} ms")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"the scaler is enabled: {scaler.is_enabled()}")
