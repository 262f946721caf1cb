import torch
from helpers import try_gpu
from torch import nn


def beyond(loss, log):
    print("a log keeps the graphs:", log.requires_grad)
    log[99] = loss
    print("without detach():", log.requires_grad)


device = try_gpu()
torch.manual_seed(0)
X = torch.randn(100, 64, 3, device=device)
y = X.sum(2, keepdim=True)
net = nn.Linear(3, 1).to(device)

# T1.log
read = torch.zeros(100)
for i in range(100):
    loss = nn.functional.mse_loss(net(X[i]), y[i])
    read[i] = loss.item()
log = torch.zeros(100, device=device)
for i in range(100):
    loss = nn.functional.mse_loss(net(X[i]), y[i])
    log[i] = loss.detach()
copied = log.cpu()
print(f"log on {log.device}, copied to {copied.device}")
print("equal logs:", copied.equal(read))
print("last loss:", copied[99].item())

beyond(loss, log)
