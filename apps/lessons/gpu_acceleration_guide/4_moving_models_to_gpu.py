import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# T4.SimpleNN
import torch.nn as nn


class SimpleNN(nn.Module):
    def __init__(self):
        super(SimpleNN, self).__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.fc2(x)
        return x


model = SimpleNN().to(device)

# Beyond the tutorial
print("Beyond the tutorial:")
print(model)
count = sum(parameter.numel() for parameter in model.parameters())
print(f"{count} parameters on {model.fc1.weight.device}")
x = torch.randn(4, 3).to(device)
print(model(x).detach())
left_behind = torch.ones(4, 3, device="cpu" if device.type == "cuda" else "meta")
try:
    model(left_behind)
except RuntimeError:
    print(f"a batch on {left_behind.device} cannot be fed to a model on {model.fc1.weight.device}")
