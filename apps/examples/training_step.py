import pathlib

import torch
from torch import nn

DIGITS = pathlib.Path(__file__).parents[1] / "train/digits"


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.out = nn.Linear(32, 10)

    def training_step(self, batch):
        X, y = batch
        logits = self.out(torch.relu(self.hidden(X + 0.1 * torch.randn_like(X))))
        return nn.functional.cross_entropy(logits, y), logits, y


def read(name, header):
    content = (DIGITS / name).read_bytes()[header:]
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


images = read("train-images-idx3-ubyte", header=16).view(-1, 64) / 16.0
labels = read("train-labels-idx1-ubyte", header=8).long()
for name, dtype in [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]:
    torch.manual_seed(0)
    model = Classifier()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
    for epoch in range(3):
        total, right = torch.zeros(2, dtype=torch.float64)
        for batch in zip(images.split(64), labels.split(64)):
            sgd.zero_grad()
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                loss, logits, y = model.training_step(batch)
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()
            total += loss.detach() * len(y)
            right += (logits.argmax(1) == y).sum()
        print(f"{name}: loss {total / len(labels):.6f}, acc {right / len(labels):.6f}")
    print(f"scale {scaler.get_scale():.0f}")
