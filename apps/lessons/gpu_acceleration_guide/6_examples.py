import torch

torch.manual_seed(0)

# T4.loop
import torch
import torch.nn as nn
import torch.optim as optim


class SimpleNN(nn.Module):
    def __init__(self):
        super(SimpleNN, self).__init__()
        self.fc1 = nn.Linear(3, 10)
        self.fc2 = nn.Linear(10, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.fc2(x)
        return x


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

model = SimpleNN().to(device)

criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

inputs = torch.randn(100, 3).to(device)
labels = torch.randint(0, 2, (100,)).to(device)

num_epochs = 5
for epoch in range(num_epochs):
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()

    print(f"Epoch [{epoch + 1}/{num_epochs}], Loss: {loss.item():.4f}")

# Beyond the tutorial
print("Beyond the tutorial:")
scaler = torch.amp.GradScaler(device.type, init_scale=2**22, growth_interval=2)
for epoch in range(num_epochs):
    optimizer.zero_grad()
    with torch.autocast(device.type, torch.half):
        outputs = model(inputs)
        loss = criterion(outputs, labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"Loss: {loss.item():.4f}, scale: {scaler.get_scale():.0f}")
print(f"outputs: {outputs.dtype}, loss: {loss.dtype}, weights: {model.fc1.weight.dtype}")
