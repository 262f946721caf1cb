import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tensor = torch.randn(5, 5).to(device)
print(tensor)

print(tensor.device, device, tensor.device == device)

stays = torch.ones(2)
stays.to(device)
print(stays.device)

if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")
print(device)

a, b = torch.ones(2, device=device), torch.full((2,), 2.0, device=device)
print(a + b)
print(a + torch.tensor(3.0))

try:
    a + torch.ones(2)
    print(f"both are on {a.device}: nothing was left behind")
except RuntimeError as error:
    print(str(error).splitlines()[0])
