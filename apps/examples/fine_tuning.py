import sys

import torch
from torch import nn
from torchvision import datasets, io, models
from torchvision.transforms import v2

to_input = v2.Compose([
    v2.Resize([256, 256]), v2.CenterCrop([224, 224]), lambda x: x.float() / 255,
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def folder(path):
    return datasets.ImageFolder(path, to_input, loader=lambda file: io.read_image(file, io.ImageReadMode.RGB))


def batch(pictures, indices):
    items = [pictures[i] for i in indices]
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


def evaluate(net, pictures):
    with torch.no_grad():
        batches = [batch(pictures, indices) for indices in torch.arange(len(pictures)).split(8)]
        return sum(net(x).argmax(1).eq(y).sum() for x, y in batches) / len(pictures)


train, test = folder(sys.argv[1]), folder(sys.argv[2])
torch.manual_seed(0)
net = models.resnet18()
net.load_state_dict(torch.load(sys.argv[3]))
net.requires_grad_(False)
net.fc = nn.Linear(512, len(train.classes))
sgd = torch.optim.SGD(net.fc.parameters(), lr=0.01, momentum=0.9, fused=True)
for epoch in range(3):
    loss_sum, right = torch.zeros((), dtype=torch.float64), 0
    net.train()
    for indices in torch.randperm(len(train), generator=torch.Generator().manual_seed(epoch)).split(8):
        x, y = batch(train, indices)
        output = net(x)
        loss = nn.functional.cross_entropy(output, y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        loss_sum += loss.detach() * len(y)
        right += output.argmax(1).eq(y).sum()
    net.eval()
    print(f"epoch {epoch + 1}/3: loss {loss_sum / len(train):.3f}, train acc {right / len(train):.3f}, "
          f"test acc {evaluate(net, test):.3f}")
torch.save(net.state_dict(), sys.argv[4])
