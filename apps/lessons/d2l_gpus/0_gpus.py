import subprocess

import torch


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


# T1.smi
query = "nvidia-smi --format=csv,noheader --query-gpu="
identities = run(query + "index,name,driver_version,memory.total")
loads = run(query + "index,memory.used,utilization.gpu")
for identity, load in zip(identities, loads):
    print(f"GPU {identity}")
    print(f"~ GPU {load}")
if not identities:
    print("The NVIDIA driver reports no GPU.")

# T1.build
is_built = torch.backends.cuda.is_built()
is_available = torch.cuda.is_available()
print(f"built for CUDA: {is_built}")
print(f"a GPU can be used: {is_available}")
if not is_built:
    print("This is a CPU build, so no driver or GPU can change the answer.")
elif not is_available:
    print("This is a CUDA build, but this process has no usable GPU.")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"GPUs in the machine: {len(identities)}")
print(f"GPUs that this process can use: {torch.cuda.device_count()}")
for i in range(torch.cuda.device_count()):
    properties = torch.cuda.get_device_properties(i)
    print(f"cuda:{i}: {properties.name}, {properties.total_memory} bytes")
