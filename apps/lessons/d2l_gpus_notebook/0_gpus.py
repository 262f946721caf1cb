import subprocess


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


# T2.1
query = "nvidia-smi --format=csv,noheader --query-gpu="
identities = run(query + "index,name,driver_version,memory.total")
loads = run(query + "index,memory.used,utilization.gpu")
for identity, load in zip(identities, loads):
    print(f"GPU {identity}")
    print(f"~ GPU {load}")
if not identities:
    print("The NVIDIA driver reports no GPU.")
