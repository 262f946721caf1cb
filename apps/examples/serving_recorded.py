import sys

import sconce_cpp
import torch

program, inputs, outputs = sys.argv[1:]
net = sconce_cpp.load_program(program).module()
x = torch.load(inputs)["x"]
with torch.no_grad():
    torch.save(torch.cat([net(batch) for batch in x.split(8)]), outputs)
print(f"{len(x)} rows")
