import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 32)
        self.places = nn.Embedding(12, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(32, 2)

    def training_step(self, batch):
        tokens, padding, label = batch
        x = self.words(tokens) + self.places.weight  # (N, L, 32)
        h = self.encoder(x, src_key_padding_mask=padding)
        kept = ~padding.unsqueeze(2)
        logits = self.out((h * kept).sum(1) / kept.sum(1))
        return nn.functional.cross_entropy(logits, label), logits, label


def sentences(count):
    length = torch.randint(4, 13, (count, 1))
    tokens = torch.randint(3, 20, (count, 12))
    at = torch.rand(count, 12).masked_fill(torch.arange(12) >= length, 2).argsort(1)
    tokens.scatter_(1, at[:, :2], torch.tensor([1, 2]).expand(count, 2))
    return tokens, torch.arange(12) >= length, (at[:, 0] < at[:, 1]).long()


for name in ("fp32", "bf16"):
    torch.manual_seed(0)
    batches = [sentences(32) for _ in range(60)]
    model = Classifier()
    adamw = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
    for epoch in range(3):
        total, right, count = torch.zeros(3, dtype=torch.float64)
        for batch in batches:
            with torch.autocast("cpu", enabled=name == "bf16"):
                loss, logits, label = model.training_step(batch)
            adamw.zero_grad()
            loss.backward()
            adamw.step()
            total += loss.detach() * len(label)
            right += (logits.argmax(1) == label).sum()
            count += len(label)
        print(f"{name}: loss {total / count:.6f}, acc {right / count:.6f}")
