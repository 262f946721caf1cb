"""Timings of workloads, their ratios, and the file that stores them."""

import hashlib
import json
import os
import platform
import re
import statistics
from importlib.metadata import version
from math import comb
from pathlib import Path

from workloads import WORKLOADS

FORMS = ("sconce", "captured", "compiled")  # forms of sconce; the first is the step without capture
NVIDIA_DRIVER = Path("/proc/driver/nvidia")


def interval(values):
    """Returns the 95% interval of the median based on order statistics: the values that contain the median with that
    probability, for any distribution.
    """
    ordered, n = sorted(values), len(values)
    probability, below = 0, 0  # the probability that at most `below` of n values are less than the median
    while True:
        probability += comb(n, below) / 2**n
        if probability > 0.025:
            break
        below += 1
    return ordered[max(0, below - 1)], ordered[min(n - 1, n - below)]


def ratio(times, ours):
    """Returns the median and the interval of the ratio by which sconce is faster than another side."""
    ratios = [theirs / own for theirs, own in zip(times, ours)]
    return {"median": statistics.median(ratios), "interval": interval(ratios)}


def median(result, side):
    return statistics.median(result["values"][side])


def fastest_form(result):
    """Returns the fastest form of sconce."""
    return min((form for form in FORMS if form in result["values"]), key=lambda form: median(result, form))


def ratios(result, form=None):
    """Returns the ratio of each other side's time to the time of one form of sconce, which is the fastest by
    default."""
    values = result["values"]
    ours = values[form or fastest_form(result)]
    made = {side: ratio(times, ours) for side, times in values.items() if side not in (*FORMS, "limit")}
    if "limit" in values:
        made["limit"] = ratio([min(values["limit"])] * len(ours), ours)
    return made


def fastest(of_sides, sides):
    """Returns the smallest of the ratios to these sides, or None if none of them was measured."""
    measured = [of_sides[side] for side in sides if side in of_sides]
    return min(measured, key=lambda of_side: of_side["median"], default=None)


def gpus():
    """Returns the GPU names and the driver version from the driver's files. The result is empty if there is no
    driver."""
    if not (NVIDIA_DRIVER / "version").exists():
        return {}
    of_all = [file.read_text() for file in sorted(NVIDIA_DRIVER.glob("gpus/*/information"))]
    driver = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", (NVIDIA_DRIVER / "version").read_text())
    return {"gpus": re.findall(r"^Model:\s*(.*\S)", "".join(of_all), re.M), "driver": driver[1] if driver else "unknown"}


def digest(program):
    """Returns a hash of the measured code: the program and the Python workloads."""
    parts = [Path(program), *sorted(Path(__file__).parent.glob("*.py"))]
    parts = [part for part in parts if part.name != "tables.py"]  # this part measures nothing
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:16]


def machine(program, threads):
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(), "threads": threads,
            "torch": version("torch"), "python": platform.python_version(), "code": digest(program)} | gpus()


def read(file):
    """Returns the contents of a timing file. Raises ValueError if another program wrote it."""
    try:
        found = json.loads(Path(file).read_text())
        known = {(workload.name, workload.size) for workload in WORKLOADS}
        if all((result["name"], result["size"]) in known for result in found["results"]) and found["machine"]:
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise ValueError(f"{file}: expected a file made by --json, got another")


def paired(results):
    """Returns each result together with its workload."""
    known = {(workload.name, workload.size): workload for workload in WORKLOADS}
    return [(known[result["name"], result["size"]], result) for result in results]


def write(file, of_machine, results):
    """Writes the results in the order of the workloads. An interrupted run leaves the previous file intact."""
    order = {(workload.name, workload.size): place for place, workload in enumerate(WORKLOADS)}
    ordered = sorted(results, key=lambda result: order[result["name"], result["size"]])
    lines = ",\n".join(json.dumps(result) for result in ordered)
    made = Path(f"{file}.new")
    made.write_text(f'{{"machine": {json.dumps(of_machine)}, "results": [\n{lines}\n]}}\n')
    made.replace(file)
