import sys
import time

import torch

program, inputs, outputs = sys.argv[1:]
net = torch._inductor.aoti_load_package(program) if program.endswith(".pt2") else torch.jit.load(program)
x = torch.load(inputs)["x"]
start = time.perf_counter()
with torch.no_grad():
    torch.save(torch.cat([net(batch) for batch in x.split(8)]), outputs)
print(f"{len(x)} rows")
print(f"~ {len(x) / (time.perf_counter() - start):.1f} rows a second")
