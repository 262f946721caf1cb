import torch
from helpers import try_gpu


def show(when):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"{when}: {allocated} bytes of tensors, {reserved} reserved")


def beyond(device):
    print("Beyond the cells:")
    try:
        torch.empty(2**50, dtype=torch.uint8, device=device)
    except RuntimeError:
        print(f"a pebibyte is refused on {device}")
    if device.type == "cpu":
        print("0 everywhere: there is no GPU")


device = try_gpu()

# T0.memory, T1.memory, T3.memory
show("before")
X = torch.ones(2, 3, device=device)
show("with 2x3 numbers")
big = torch.empty(64, 1024, 1024, device=device)
show("with 256 MiB more")
X = None
big = None
show("without them")
torch.cuda.empty_cache()
show("with an empty cache")

beyond(device)
