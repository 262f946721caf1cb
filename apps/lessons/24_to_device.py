import torch

torch.manual_seed(0)
# T4.tensor
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tensor = torch.randn(5, 5).to(device)

# T4.check
if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")

# T4.same
tensor1 = torch.randn(5, 5).to(device)
tensor2 = torch.randn(5, 5).to(device)
result = tensor1 + tensor2

print("Beyond the cells:")
print(tensor)
print(tensor.device, device, tensor.device == device)
print(result)

stays = torch.ones(2)
stays.to(device)
print(stays.device)

print((tensor1 + torch.tensor(3.0))[0])
left_behind = torch.ones(5, 5, device="meta" if device.type == "cpu" else "cpu")
try:
    tensor1 + left_behind
except RuntimeError as error:
    print(tensor1.device, "and", left_behind.device, "do not add")
    if device.type != "cpu":
        print(str(error).splitlines()[0])
