import torch
from helpers import try_gpu
from torch import nn


class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train(device, dtype, steps, **options):
    torch.manual_seed(0)
    model = SimpleNN().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device.type, **options)
    inputs = torch.randn(100, 3).to(device)
    labels = torch.randint(0, 2, (100,)).to(device)

    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            outputs = model(inputs)
            loss = nn.functional.cross_entropy(outputs, labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"  step {step + 1}: loss {loss.item():.4f}, scale {scaler.get_scale():.0f}")
    print(f"  outputs {outputs.dtype}, loss {loss.dtype}, weights {model.fc1.weight.dtype}")


device = try_gpu()
for dtype in [torch.float32, torch.bfloat16, torch.float16]:
    print(dtype)
    train(device, dtype, 4, enabled=dtype == torch.float16)

print("from a scale of 2**24")
train(device, torch.float16, 8, init_scale=2.0**24, growth_interval=2)
