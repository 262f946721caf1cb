import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 2)

    def training_step(self, batch):
        tokens, mask, label = batch
        logits = self.words(tokens).masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)
        return nn.functional.cross_entropy(logits, label), logits, label


torch.manual_seed(0)
batches = []
for tokens in torch.randint(1, 30, (20, 12, 12)).tril():
    batches.append((tokens, tokens > 0, (tokens > 24).any(1).long()))
model = Classifier()
adamw = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
for epoch in range(5):
    total, right, count = torch.zeros(3, dtype=torch.float64)
    for batch in batches:
        loss, logits, label = model.training_step(batch)
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        total += loss.detach() * len(label)
        right += (logits.argmax(1) == label).sum()
        count += len(label)
    print(f"loss {total / count:.6f}, acc {right / count:.6f}")
