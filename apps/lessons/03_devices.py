import helpers
import torch


def beyond():
    print("Beyond the cells:")
    print(f"the first is a GPU: {helpers.try_gpu().type == 'cuda'}")
    print(f"index 10 is GPU number {helpers.gpu(10).index + 1}")
    print(f"cuda is cuda:0: {torch.device('cuda') == helpers.gpu(0)}")
    for name in ["cuda1", "gpu"]:
        try:
            print(torch.device(name))
        except RuntimeError:
            print(name, "is no device")


# T0.cpu-gpu, T2.3
def cpu():
    return torch.device("cpu")


def gpu(i=0):
    return torch.device(f"cuda:{i}")


print([cpu(), gpu(), gpu(1)])

# T1.devices
print(torch.device("cpu"), torch.device("cuda"), torch.device("cuda:1"))


# T0.num_gpus, T1.count, T2.6
def num_gpus():
    return torch.cuda.device_count()


print(f"Number of available GPUs: {num_gpus()}")


# T0.try, T2.8
def try_gpu(i=0):
    return gpu(i) if num_gpus() >= i + 1 else cpu()


def try_all_gpus():
    return [gpu(i) for i in range(num_gpus())]


print(f"First GPU: {try_gpu()}")
print(f"Tenth GPU (falls back to CPU): {try_gpu(10)}")
print(f"All GPUs: {try_all_gpus()}")

# T1.try
print(helpers.try_gpu(), helpers.try_gpu(10), helpers.try_all_gpus())

beyond()
