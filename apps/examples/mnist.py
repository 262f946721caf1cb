import os
import sys

import torch
from torch import nn


def read_idx(path):
    with open(path, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    sizes = [int.from_bytes(bytes(size.tolist()), "big") for size in data[4:4 + 4 * data[3]].split(4)]
    return data[4 + 4 * len(sizes):].view(sizes)


def read(part):
    images = read_idx(part + "-images-idx3-ubyte").unsqueeze(1).float()
    return images / images.max(), read_idx(part + "-labels-idx1-ubyte").long()


digits = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../train/digits")
folder = sys.argv[1] if len(sys.argv) > 1 else digits
images, labels = read(folder + "/train")
test_images, test_labels = read(folder + "/t10k")
torch.manual_seed(0)
net = nn.Sequential(
    nn.LazyConv2d(6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.LazyConv2d(16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.LazyLinear(120), nn.ReLU(), nn.LazyLinear(84), nn.ReLU(), nn.LazyLinear(10))
sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=10)
for epoch in range(10):
    loss_sum, right = torch.zeros((), dtype=torch.float64), 0
    for rows in torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch)).split(32):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = net(images[rows])
            loss = nn.functional.cross_entropy(output, labels[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        loss_sum += loss.detach() * len(rows)
        right += output.argmax(1).eq(labels[rows]).sum()
    cosine.step()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        output = torch.cat([net(part) for part in test_images.split(1000)])
        test_right = output.argmax(1).eq(test_labels).sum()
    print(f"epoch {epoch + 1}: loss {loss_sum / len(images):.4f}, train acc {right / len(images):.4f}, "
          f"test acc {test_right / len(test_images):.4f}")
