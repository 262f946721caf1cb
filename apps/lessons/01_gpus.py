import subprocess

import torch
from helpers import gpu, num_gpus


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def beyond(num_gpus_of_machine):
    print("Beyond the cells:")
    print(f"GPUs of the machine: {num_gpus_of_machine}")
    print(f"GPUs for this process: {num_gpus()}")
    for i in range(num_gpus()):
        properties = torch.cuda.get_device_properties(gpu(i))
        print(f"{gpu(i)}: {properties.name}, {properties.total_memory} bytes")


# T0.smi, T1.smi, T2.1
query = "nvidia-smi --format=csv,noheader --query-gpu="
identities = run(query + "index,name,driver_version,memory.total")
loads = run(query + "index,memory.used,utilization.gpu")
for identity, load in zip(identities, loads):
    print(f"GPU {identity}")
    print(f"~ GPU {load}")
if not identities:
    print("nvidia-smi shows no GPU on this machine")

beyond(len(identities))
