import torch


# T0.cpu-gpu
def cpu():
    return torch.device('cpu')


def gpu(i=0):
    return torch.device(f'cuda:{i}')


# T0.num_gpus
def num_gpus():
    return torch.cuda.device_count()


print(f"Number of available GPUs: {num_gpus()}")


# T0.try
def try_gpu(i=0):
    if num_gpus() >= i + 1:
        return gpu(i)
    return cpu()


def try_all_gpus():
    return [gpu(i) for i in range(num_gpus())]


print(f"First GPU: {try_gpu()}")
print(f"Tenth GPU (falls back to CPU): {try_gpu(10)}")
print(f"All GPUs: {try_all_gpus()}")

# Beyond the tutorial
print("Beyond the tutorial:")
print(f"the first is a GPU: {try_gpu().type == 'cuda'}")
print(f"gpu(10) is GPU number {gpu(10).index + 1}")
print(f"sconce::try_all_gpus(): {try_all_gpus() or [cpu()]}")
