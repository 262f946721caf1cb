"""A Python workload for bench.py: worker.py FILE.NAME VARIANT [SIZE].

Prints the workload's check as a JSON list. Then, for each line N on standard input, prints the number of seconds that N
calls took, or for N = 0, the peak number of bytes that the GPU's allocator has reserved. VARIANT is one of these:

- "default": the code that most programs use
- "best": the fastest code for the same work in PyTorch's eager mode in Python
- "files": writes the files that both sides read
- "compile", "compile_model", or "compile_step": uses torch.compile
- "jax_step" or "jax_scan": in the file jax_steps
- "numbers": only saves the initial values for the JAX form
"""

import importlib
import json
import sys
import time
import timeit
from math import ceil


def main(name, variant, size="0"):
    file, function = name.split(".")
    check, call, *rest = getattr(importlib.import_module(file), function)(variant, int(size))
    wait = rest[0] if rest else lambda: None  # waits until the calls have finished on a GPU
    of_a_call = rest[1] if len(rest) > 1 else 1  # number of steps in a loop that is compiled as a unit
    print(json.dumps(check), flush=True)
    if call is None:
        return
    timer = timeit.Timer(call)
    for line in sys.stdin:
        steps = int(line)
        if steps == 0:
            print(sys.modules["torch"].cuda.max_memory_reserved(), flush=True)
            continue
        calls = ceil(steps / of_a_call)
        wait()
        start = time.perf_counter()
        timer.timeit(calls)
        wait()
        print((time.perf_counter() - start) * steps / (calls * of_a_call), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
