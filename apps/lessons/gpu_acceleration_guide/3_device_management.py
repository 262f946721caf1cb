import torch
from torch import nn


class SimpleNN(nn.Module):
    def __init__(self):
        super(SimpleNN, self).__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.fc2(x)
        return x


torch.manual_seed(0)

# T4.check
if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")

# T4.model
model = SimpleNN()
model = model.to(device)

# Beyond the tutorial
print("Beyond the tutorial:")
for name, parameter in model.named_parameters():
    print(f"{name} on {parameter.device}")
norm = nn.BatchNorm1d(3)
norm = norm.to(device)
for name, buffer in norm.named_buffers():
    print(f"{name} on {buffer.device}")
