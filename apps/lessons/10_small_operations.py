import torch
from helpers import calls_of, median_seconds, try_gpu, waits_of

device = try_gpu()
torch.manual_seed(0)
a = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)
b = torch.randint(10, (1000, 1000), dtype=torch.float).to(device)


# T0.batch, T1.small
def add():
    return a + b


def add_rows():
    return [a[i] + b[i] for i in range(1000)]


print(f"equal sums: {torch.stack(add_rows()).equal(add())}, "
      f"in all {add().double().sum().item()} on {add().device}")
print(f"additions: {calls_of('aten::add', add_rows)} small, {calls_of('aten::add', add)} large")


def copy(x):
    return x.to("cpu", copy=True)


def copy_all():
    return copy(a)


def copy_rows():
    return [copy(a[i]) for i in range(1000)]


print(f"equal copies: {torch.stack(copy_rows()).equal(copy_all())}, "
      f"in all {copy_all().double().sum().item()}")
print(f"copies: {calls_of('aten::_to_copy', copy_rows)} small, "
      f"{calls_of('aten::_to_copy', copy_all)} large")


def time():
    print(f"~ additions: 1000 small {median_seconds(add_rows) * 1e3:.3f} ms, "
          f"one large {median_seconds(add) * 1e3:.3f} ms; "
          f"copies: 1000 small {median_seconds(copy_rows) * 1e3:.3f} ms, "
          f"one large {median_seconds(copy_all) * 1e3:.3f} ms")


print("waits of the clock:", waits_of(time))
