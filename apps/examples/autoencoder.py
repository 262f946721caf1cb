import pathlib

import torch
from torch import nn

DIGITS = pathlib.Path(__file__).parents[1] / "train/digits/train-images-idx3-ubyte"


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(64, 16)
        self.decode = nn.Linear(16, 64)

    def forward(self, x):
        return self.decode(torch.relu(self.encode(x)))


# The images follow a 16-byte header.
images = torch.frombuffer(bytearray(DIGITS.read_bytes()[16:]), dtype=torch.uint8).view(-1, 8, 8)
batches = (images.flatten(1) / 16.0).split(64)
torch.manual_seed(0)
model = Autoencoder()
adam = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
for epoch in range(5):
    total, errors = torch.zeros(2, dtype=torch.float64)
    for x in batches:
        output = model(x)
        loss = nn.functional.mse_loss(output, x)
        adam.zero_grad()
        loss.backward()
        adam.step()
        total += loss.detach() * len(x)
        errors += (output.detach() - x).abs().sum(dtype=torch.float64)
    print(f"epoch {epoch + 1}: loss {total / len(images):.6f}, mae {errors / images.numel():.6f}")
