import subprocess


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


# T0.smi
def nvidia_smi():
    query = "nvidia-smi --format=csv,noheader --query-gpu="
    identities = run(query + "index,name,driver_version,memory.total")
    loads = run(query + "index,memory.used,utilization.gpu")
    for identity, load in zip(identities, loads):
        print(f"GPU {identity}")
        print(f"~ GPU {load}")
    if not identities:
        print("nvidia-smi shows no GPU on this machine")


nvidia_smi()

# T0.import
import torch
from torch import nn

# T0.build
is_built = torch.backends.cuda.is_built()
is_available = torch.cuda.is_available()
print(f"built for CUDA: {is_built}")
print(f"a GPU can be used: {is_available}")
if not is_built:
    print("This is a CPU build: neither a driver nor a GPU changes that.")
elif not is_available:
    print("This is a CUDA build, but this process has no usable GPU.")
else:
    print("This is a CUDA build, and it can use a GPU.")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"GPUs for this process: {torch.cuda.device_count()}")
for i in range(torch.cuda.device_count()):
    gpu = torch.cuda.get_device_properties(i)
    print(f"cuda:{i}: {gpu.name}, {gpu.total_memory} bytes")
