import helpers
import torch


# T2.3
def cpu():
    return torch.device("cpu")


def gpu(i=0):
    return torch.device(f"cuda:{i}")


# T0.num_gpus, T1.count, T2.6
def num_gpus():
    return torch.cuda.device_count()


# T0.try, T1.try, T2.8
def try_gpu(i=0):
    return gpu(i) if num_gpus() >= i + 1 else cpu()


def try_all_gpus():
    return [gpu(i) for i in range(num_gpus())]


# T1.try
def try_all_gpus_or_cpu():
    return try_all_gpus() if num_gpus() > 0 else [cpu()]


# T0.cpu-gpu, T1.devices
cuda = torch.device("cuda")
print((torch.device("cpu"), cuda, torch.device("cuda:1")))
print((cpu(), gpu(), gpu(1)))  # T2.3
# T0.num_gpus, T1.count, T2.6
print(f"Number of available GPUs: {num_gpus()}")
# T0.try, T2.8
print(f"First GPU: {try_gpu()}")
if try_gpu().type == "cpu":
    print("That is no GPU: there is none.")
print(f"Tenth GPU (falls back to CPU): {try_gpu(10)}")
print(f"Index {gpu(10).index} is the eleventh GPU.")
print(f"All GPUs: {try_all_gpus()}")
if not try_all_gpus():
    print("No device, where the CPU was promised.")
# T1.try
print(f"All GPUs, or the CPU: {try_all_gpus_or_cpu()}")

print("Beyond the cells:")
print(cpu(), gpu(), gpu(1))
for name in ["cuda1", "gpu"]:
    try:
        print(torch.device(name))
    except RuntimeError:
        print(name, "is no device")
print("cuda is cuda:0:", cuda == gpu(0))
print("a context manager is a device:", issubclass(torch.cuda.device, torch.device))
are_equal = (gpu(1) == helpers.gpu(1) and num_gpus() == helpers.num_gpus()
             and try_gpu(10) == helpers.try_gpu(10) and try_gpu() == helpers.try_gpu()
             and try_all_gpus_or_cpu() == helpers.try_all_gpus())
print("sconce's own give the same:", are_equal)
