import torch


def num_gpus():
    return torch.cuda.device_count()


def try_gpu(i=0):
    if num_gpus() >= i + 1:
        return torch.device(f'cuda:{i}')
    return torch.device('cpu')


torch.manual_seed(0)

# T2.10
x = torch.tensor([1, 2, 3])
print(x.device)

# T2.11
X = torch.ones(2, 3, device=try_gpu())
print(X)

# T2.12
Y = torch.rand(2, 3, device=try_gpu(1))
print(Y)

# T2.13
try:
    X + Y
except:
    print(f'Tensor in {X.device} cannot add with tensor in {Y.device}')

# T2.18
Z = X.cuda(1) if torch.cuda.device_count() > 1 else X.to(try_gpu(1))  # guard
print(X)
print(Z)

# T2.19
print(Y + Z)

# T2.22
print(Z.cuda(1) is Z if torch.cuda.device_count() > 1 else Z.to(try_gpu(1)) is Z)  # guard

# Beyond the tutorial
print("Beyond the tutorial:")
try:
    X + torch.ones(2, 4, device=try_gpu())
except:
    print(f"Tensor in {X.device} cannot add with tensor in {X.device}, "
          "says a catch for everything")
try:
    X + torch.ones(2, 4, device=try_gpu())
except RuntimeError as error:
    print(error)
