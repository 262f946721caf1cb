import torch
from helpers import try_gpu

device = try_gpu()


def show(when):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"{when}: {allocated} bytes of tensors, {reserved} reserved")


with torch.autograd.profiler.profile(profile_memory=True) as profile:
    # T0.memory, T1.memory, T3.memory
    show("before")
    X = torch.ones(2, 3, device=device)
    show("with 2x3 numbers")
    big = torch.empty(64, 1024, 1024, device=device)
    show("with 256 MiB more")
    X = None
    big = None
    show("without them")
    torch.cuda.empty_cache()
    show("with an empty cache")
    try:
        torch.empty(2**50, dtype=torch.uint8, device=device)
    except RuntimeError:
        print("a pebibyte is refused")

events = sorted(profile.kineto_results.events(), key=lambda event: event.start_ns())
sizes = [event.nbytes() for event in events
         if event.name() == "[memory]" and event.device_type().name.lower() == device.type]
print("Beyond the cells:")
print(f"blocks taken (+) and freed (-) on {device.type}:", *[f"{size:+}" for size in sizes])
peak = max(sum(sizes[:count]) for count in range(len(sizes) + 1))
print(f"blocks: {len(sizes) // 2}, peak: {peak} bytes, at the end: {sum(sizes)}")
