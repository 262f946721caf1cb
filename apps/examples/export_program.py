import sys

import torch

weights, script, package = sys.argv[1:]
net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10), torch.nn.Softmax(1))
net.load_state_dict(torch.load(weights))
net.eval()
x = torch.zeros(8, 64)  # an example batch
about = {"torch": torch.__version__.split("+")[0], "rows": f"{x.dtype} {x.shape[1:]}",
         "cpu": torch.backends.cpu.get_cpu_capability()}

torch.jit.save(torch.jit.trace(net, x), script, _extra_files=about)

program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
torch._inductor.aoti_compile_and_package(
    program, package_path=package, inductor_configs={"aot_inductor.metadata": about})
