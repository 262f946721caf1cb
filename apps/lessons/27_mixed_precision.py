import torch
from helpers import try_gpu
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def beyond(dataloader, device):
    for dtype in [torch.float32, torch.bfloat16, torch.float16]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler(device.type, init_scale=2.0**24, growth_interval=2)
        for data, target in dataloader:
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
                output = model(data)
                loss = nn.functional.cross_entropy(output, target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            print(f"loss {loss.item():.4f}, scale {scaler.get_scale():.0f}")
        print(f"output {output.dtype}, loss {loss.dtype}, weights {model.weight.dtype}")


device = try_gpu()
torch.manual_seed(0)
model = nn.Linear(3, 2).to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(200, 3).to(device)
labels = torch.randint(0, 2, (200,)).to(device)
dataloader = DataLoader(TensorDataset(inputs, labels), 25)

# T4.amp
scaler = torch.amp.GradScaler(device.type)
for data, target in dataloader:
    optimizer.zero_grad()
    with torch.autocast(device.type):
        output = model(data)
        loss = loss_fn(output, target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

beyond(dataloader, device)
