"""A Python workload for bench.py: worker.py FILE.NAME VARIANT [SIZE].

Prints the workload's check as a JSON list. Then, for each line N on standard input, prints the seconds that
N calls took. VARIANT is "default", as most programs are written; "best", as fast as PyTorch in Python can do
the same; or "compile", with torch.compile.
"""

import importlib
import json
import sys
import time
import timeit


def main(name, variant, size="0"):
    file, function = name.split(".")
    check, call, *rest = getattr(importlib.import_module(file), function)(variant, int(size))
    wait = rest[0] if rest else lambda: None  # waits until the calls are done, on a GPU
    print(json.dumps(check), flush=True)
    timer = timeit.Timer(call)
    for line in sys.stdin:
        wait()
        start = time.perf_counter()
        timer.timeit(int(line))
        wait()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
