import torch
from helpers import calls_of, try_gpu
from torch import nn


def train(device, log_loss):
    torch.manual_seed(0)
    X = torch.randn(64, 3, device=device)
    y = X.sum(1, keepdim=True)
    net = nn.Linear(3, 1).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(100):
        loss = nn.functional.mse_loss(net(X), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        log_loss(i, loss)


def keep_in(log, value_of):
    def keep(i, loss):
        log[i] = value_of(loss)
    return lambda: train(device, keep)


device = try_gpu()
read_of_one = "aten::_local_scalar_dense"
copy_elsewhere = "aten::_to_copy"

# T1.log
read = torch.zeros(100)
read_losses = keep_in(read, lambda loss: loss.item())
print("host reads with item():", calls_of(read_of_one, read_losses))

log = torch.zeros(100, device=device)
keep_losses = keep_in(log, lambda loss: loss.detach())
print("host reads with a log on the device:", calls_of(read_of_one, keep_losses))
copies = calls_of(copy_elsewhere, lambda: log.cpu())
copied = log.cpu()
print(f"copies of the log, from {log.device} to {copied.device}: {copies}")

print("Beyond the cells:")
print(f"equal logs: {copied.equal(read)}, "
      f"the last loss below the first: {(copied[99] < copied[0]).item()}")
with_graph = torch.zeros(100, device=device)
keep_in(with_graph, lambda loss: loss)()
print(f"a log keeps the graphs: {log.requires_grad}, without detach() {with_graph.requires_grad}")
