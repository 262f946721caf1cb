import torch
from helpers import median_seconds, try_gpu
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SimpleNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(3, hidden)
        self.fc2 = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train(dataset, dtype=torch.float16, device="cuda", batch_size=25, hidden=10, show=True,
          **options):
    torch.manual_seed(0)
    model = SimpleNN(hidden).to(try_gpu())
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dataloader = DataLoader(TensorDataset(*dataset), batch_size)
    # T4.amp
    scaler = torch.amp.GradScaler(device, **options)
    for data, target in dataloader:
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            output = model(data)
            loss = loss_fn(output, target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if show:
            print(f"  loss {loss.item():.4f}, scale {scaler.get_scale():.0f}")
    if show:
        print(f"  output {output.dtype}, loss {loss.dtype}, weights {model.fc1.weight.dtype}")


torch.manual_seed(0)
dataset = torch.randn(100, 3), torch.randint(0, 2, (100,))
print("Beyond the cells:\nas T4 has it")
try:
    train(dataset)
except RuntimeError:
    print("  refused: the data are on", dataset[0].device)

device = try_gpu()
dataset = [tensor.to(device) for tensor in dataset]
for dtype in [torch.float32, torch.bfloat16, torch.float16]:
    print(dtype, "on", device)
    train(dataset, dtype, device.type, enabled=dtype == torch.float16)
print("from a scale of 2**24")
train(dataset, torch.float16, device.type, 13, init_scale=2.0**24, growth_interval=2)

for dtype in [torch.float32, torch.bfloat16]:
    def wide():
        train(dataset, dtype, device.type, 25, 4096, show=False, enabled=False)
    seconds = median_seconds(wide, device, 3)
    print(f"~ a wide model's step in {dtype}: {seconds / 4e-3:.3f} ms")
