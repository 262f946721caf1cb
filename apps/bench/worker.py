"""A workload of Python for bench.py: worker.py FILE.NAME VARIANT [SIZE].

Prints what the workload comes to as a JSON list; then, for each line N on standard input, the
seconds that N calls took. VARIANT is "default", as most programs are written, or "best", as fast as
Python's PyTorch can do the same.
"""

import importlib
import json
import sys
import timeit


def main(name, variant, size="0"):
    file, function = name.split(".")
    check, call = getattr(importlib.import_module(file), function)(variant, int(size))
    print(json.dumps(check), flush=True)
    timer = timeit.Timer(call)
    for line in sys.stdin:
        print(timer.timeit(int(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
