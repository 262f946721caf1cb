import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(50, 4)
        self.films = nn.Embedding(40, 4)

    def forward(self, user, film):
        return (self.users(user) * self.films(film)).sum(1)


torch.manual_seed(0)
ratings = torch.outer(torch.arange(-25, 25) / 10, torch.arange(-20, 20) / 10)
batches = []
for pairs in torch.randperm(2000).split(100):
    user, film = pairs.div(40, rounding_mode="floor"), pairs.remainder(40)
    batches.append((user, film, ratings[user, film]))
train, test = batches[:15], batches[15:]
model = Factors()
adam = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
for epoch in range(5):
    train_loss, test_loss = torch.zeros(2, dtype=torch.float64)
    for user, film, rating in train:
        loss = nn.functional.mse_loss(model(user, film), rating)
        adam.zero_grad()
        loss.backward()
        adam.step()
        train_loss += loss.detach()
    with torch.no_grad():
        for user, film, rating in test:
            test_loss += nn.functional.mse_loss(model(user, film), rating)
    print(f"epoch {epoch + 1}: loss {train_loss / len(train):.6f}, test loss {test_loss / len(test):.6f}")
