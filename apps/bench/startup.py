"""Start-up to the first tensor: a sconce program against Python's torch.

Runs the two in turn, whole processes, and prints the medians and the median ratio. The Python to
compare with is the one that runs this script:
    build/setup/torch-2.15.0/bin/python apps/bench/startup.py build/default/bin/bench-startup
"""

import statistics
import subprocess
import sys
import time


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def main(program, runs=15):
    ours, theirs = [program], [sys.executable, "-c", "import torch; torch.ones(1)"]
    seconds(ours), seconds(theirs)  # the first runs read the libraries from disk
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(runs)]
    for name, column in (("sconce", 0), ("python", 1)):
        times = [pair[column] for pair in pairs]
        print(f"{name}: median {statistics.median(times):.3f} s"
              f" ({min(times):.3f} to {max(times):.3f}, {runs} runs)")
    print(f"ratio: median {statistics.median(a / b for a, b in pairs):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
