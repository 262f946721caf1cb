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
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# T4.dp
model = nn.DataParallel(SimpleNN()).to(device)

# Beyond the tutorial
print("Beyond the tutorial:")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)
for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    print(f"Epoch [{epoch + 1}/5], Loss: {loss.item():.4f}")


class Rows(nn.Module):
    def forward(self, x):
        return torch.tensor([[x.size(0), x.get_device()]], device=x.device)


print("rows and GPU of each replica (-1 is the CPU):", nn.DataParallel(Rows())(inputs), sep="\n")
if torch.cuda.device_count() < 2:
    print("needs two GPUs to split the batch")
