import torch
from helpers import try_gpu
from torch import nn


def beyond(model, inputs, labels):
    print(model)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{count} parameters on {model.fc1.weight.device}")
    print(inputs.device, labels.device)
    print(model(inputs).detach())
    norm = nn.BatchNorm1d(3).to(inputs.device)
    for name, buffer in norm.named_buffers():
        print(name, buffer.device)


device = try_gpu()
torch.manual_seed(0)


# T4.SimpleNN
class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


# T4.model
model = SimpleNN().to(device)

# T4.batch
inputs = torch.randn(4, 3)
labels = torch.randint(0, 2, (4,))
inputs, labels = inputs.to(device), labels.to(device)

beyond(model, inputs, labels)
