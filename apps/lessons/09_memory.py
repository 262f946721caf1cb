import torch
from helpers import try_gpu

device = try_gpu()


def show(when):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"{when}: {allocated} bytes of tensors, {reserved} reserved")


show("before")
X = torch.ones(2, 3, device=device)
show("with 2x3 numbers")
big = torch.empty(64, 1024, 1024, device=device)
show("with 256 MiB more")
X = big = None
show("without them")
torch.cuda.empty_cache()
show("with an empty cache")

try:
    torch.empty(2**50, dtype=torch.uint8, device=device)
except RuntimeError:
    print("a pebibyte is refused")
if device.type == "cpu":
    print("With a GPU the figures would not be 0.")
