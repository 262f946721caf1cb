import subprocess

from helpers import num_gpus


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


# T0.smi, T1.smi, T2.1
query = "nvidia-smi --format=csv,noheader --query-gpu="
gpus = run(query + "index,name,driver_version,memory.total")
for line in gpus:
    print(f"GPU {line}")
for line in run(query + "index,memory.used,utilization.gpu"):
    print(f"~ GPU {line}")
if not gpus:
    print("nvidia-smi shows no GPU on this machine")

print("Beyond the cells:")
print(f"GPUs of the machine: {len(gpus)}")
print(f"GPUs for this process: {num_gpus()}")
