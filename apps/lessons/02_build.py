# T0.import
import torch

# T0.build, T1.build
is_built = torch.backends.cuda.is_built()
is_available = torch.cuda.is_available()
print("built for CUDA:", is_built)
print("a GPU can be used:", is_available)

if not is_built:
    print("This is a CPU build: no driver and no GPU will change that.")
elif not is_available:
    print("This is a CUDA build in a process without a usable GPU.")
else:
    print("This is a CUDA build, and it can use a GPU.")
