import torch
from helpers import median_seconds, try_gpu


def beyond(a):
    def copy(x):
        return x.to("cpu", copy=True)

    def small():
        return [copy(a[i]) for i in range(1000)]

    def large():
        return copy(a)

    print(f"Beyond the cells:\nequal copies: {torch.stack(small()).equal(large())}")
    print(f"sum on {a.device}: {a.sum().item()}")
    print(f"~ copies: 1000 small {median_seconds(small) * 1e3:.3f} ms, "
          f"one large {median_seconds(large) * 1e3:.3f} ms")


torch.manual_seed(0)
a = torch.randint(10, (1000, 1000), dtype=torch.float).to(try_gpu())
b = torch.randint(10, (1000, 1000), dtype=torch.float).to(try_gpu())


# T0.batch, T1.small
def small():
    return [a[i] + b[i] for i in range(1000)]


def large():
    return a + b


print(f"equal sums: {torch.stack(small()).equal(large())}")
print(f"~ additions: 1000 small {median_seconds(small) * 1e3:.3f} ms, "
      f"one large {median_seconds(large) * 1e3:.3f} ms")

beyond(a)
