import torch


def beyond(tensor, result):
    print(tensor)
    print(result)
    device = torch.device(tensor.device.type)
    print(f"{tensor.device} == {device}: {tensor.device == device}")
    tensor.to("meta")
    print("to() without =:", tensor.device)
    print("plus 3:", (result + torch.tensor(3.0))[0])
    left_behind = torch.ones(5, 5, device="meta" if device.type == "cpu" else "cpu")
    try:
        result + left_behind
    except RuntimeError as error:
        print(f"{result.device} + {left_behind.device}: refused")
        if device.type == "cuda":
            print(str(error).splitlines()[0])


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

beyond(tensor, result)
